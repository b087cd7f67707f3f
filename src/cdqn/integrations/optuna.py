"""Optuna: which settings to try next, given what came of those before.

Nothing of Optuna is kept between two questions, neither on disk nor in memory: the study is made anew from plain
values, and random numbers come from a seed of the question's own. So the same past gives the same answer, whether the
search was interrupted or not.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from cdqn.integrations.optional import missing

STARTUP_TRIALS = 10
"""Drawn at random before the search begins to lean on what it has seen."""


class Past(NamedTuple):
    """A trial that has begun."""

    settings: Mapping[str, Any]
    state: Literal["running", "complete", "pruned"]
    value: float | None
    """What it reached, where it is complete."""
    curve: Iterable[float]
    """What it had reached at each evaluation."""


def require_optuna() -> None:
    """Now, and not after the first trial."""
    _optuna()


def suggest(space: Mapping[str, Any], past: Iterable[Past], seed: int) -> dict[str, Any]:
    """The next settings, by a tree of Parzen estimators (TPE); a larger value is better.

    `space`: a `Choice` or `Range` of `cdqn.runs.sweep.space` for each setting. Values of a trial that lie outside of it
    are left out, and teach nothing.
    """
    optuna = _optuna()
    distributions = {name: _distribution(optuna, dimension) for name, dimension in space.items()}
    with _quietly(optuna):
        # constant_liar: trials under way count as bad ones, so that those beside them are tried elsewhere.
        # Each setting by itself (not multivariate): the defaults may lie outside of the space in one of them.
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP_TRIALS, constant_liar=True, multivariate=False
        )
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for trial in past:
            study.add_trial(_frozen(optuna, trial, space, distributions))
        found = study.ask(distributions).params
    return {name: _value(dimension, found[name]) for name, dimension in space.items()}


def _distribution(optuna: Any, dimension: Any) -> Any:
    if hasattr(dimension, "values"):
        return optuna.distributions.CategoricalDistribution(range(len(dimension.values)))
    kind = optuna.distributions.IntDistribution if dimension.integer else optuna.distributions.FloatDistribution
    return kind(dimension.low, dimension.high, log=dimension.log)


def _value(dimension: Any, found: Any) -> Any:
    return dimension.values[found] if hasattr(dimension, "values") else dimension.rounded(found)


def _frozen(optuna: Any, trial: Past, space: Mapping[str, Any], distributions: Mapping[str, Any]) -> Any:
    inside = {name: value for name, value in trial.settings.items() if name in space and value in space[name]}
    params = {
        name: space[name].values.index(value) if hasattr(space[name], "values") else value
        for name, value in inside.items()
    }
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState[trial.state.upper()],
        value=trial.value if trial.state == "complete" else None,
        params=params,
        distributions={name: distributions[name] for name in params},
        intermediate_values=dict(enumerate(trial.curve)),
    )


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise missing("a sweep needs optuna", "sweep") from error
    return optuna


@contextmanager
def _quietly(optuna: Any) -> Iterator[None]:
    """No word about a study that is in memory alone; afterwards all is as its owner had it."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)
