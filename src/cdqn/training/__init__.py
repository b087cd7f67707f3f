"""One run in memory: from the environment to the weights."""
