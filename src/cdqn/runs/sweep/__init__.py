"""A search for settings: trials, each a set of settings trained on a few seeds, chosen by what came of those before."""

from cdqn.runs.sweep.search import sweep

__all__ = ["sweep"]
