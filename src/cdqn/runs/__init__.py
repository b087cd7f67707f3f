"""Runs on disk: folders, several at a time, comparisons, the suite, the paper's test protocol."""
