"""Run folders in, tables and pictures out: this room reads what a run wrote and never trains."""
