"""Learning from fixed data: where it comes from (`sources`), what it must be (`columns`), and the `trainer`."""
