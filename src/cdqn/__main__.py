"""`python -m cdqn` is `cdqn`."""

from cdqn.cli.main import entry

entry()
