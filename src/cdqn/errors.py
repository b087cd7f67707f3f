"""Errors for people: each message names the value, the place and the remedy.

Everything raised here derives from `CdqnError`, which the command line prints as one line, without a
traceback. A bug of ours is never a `CdqnError`, and keeps its traceback.
"""


class CdqnError(Exception):
    """An error whose message alone tells its reader what happened and what to do."""


class ConfigError(CdqnError, ValueError):
    """A setting is out of range, cannot act, or contradicts another."""


class UnsupportedEnvironmentError(CdqnError, ValueError):
    """The environment does not exist, or has spaces this library does not learn from."""


class NonFiniteError(CdqnError, ArithmeticError):
    """NaN or infinity where a number must be: from an environment, or from training that diverged."""


class CheckpointError(CdqnError):
    """A checkpoint or run folder is damaged, foreign, incomplete or cannot be written."""


class EnvironmentTimeoutError(CdqnError, TimeoutError):
    """An environment has not returned from reset or step within the limit that was set."""


class MissingPackageError(CdqnError, ImportError):
    """An optional package is needed for what was asked; the message has the line that installs it."""


class StoppedError(CdqnError):
    """Somebody asked for an end while something was under way that leaves nothing half done."""
