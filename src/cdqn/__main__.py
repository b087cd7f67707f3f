"""`python -m cdqn` is `cdqn`."""

from cdqn.cli import entry

entry()
