"""One page, for a browser, of the experiments in a folder."""
