"""One folder for each experiment: its runs, its claims and its figure."""
