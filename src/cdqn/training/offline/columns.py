"""From arrays to transitions: what a data set must be is checked here, row by row, before anything is trained.

Rows are numbered from 0, as NumPy does. Episodes are *known* where every row that does not end one is followed by a row
that begins where it led: then returns over several steps can be made.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cdqn.envs import EnvSpec
from cdqn.envs.observations import Adapter, batch_of
from cdqn.errors import ConfigError
from cdqn.replay import Transitions
from cdqn.replay.multi_step import joined_rows

Array = NDArray[Any]
NEEDED = ("observations", "actions", "rewards", "next_observations", "terminations")
OPTIONAL = ("truncations",)
LIKELY_LIMIT = 3
"""So many episodes of one length, and at least half of all, let one think of a time limit."""


class Columns(NamedTuple):
    """A data set whose arrays fit one another; what it fits besides is not known yet."""

    observations: Array
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]
    next_observations: Array
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]


@dataclass(frozen=True)
class Data:
    """What is learned from."""

    rows: int
    chunks: Callable[[], Iterable[Transitions]]
    """The rows, in pieces of which each fits into memory beside what is stored of them."""
    rewards: Array
    reward_abs_max: float
    """Of a single step."""
    ended: NDArray[np.bool_] | None = None
    """Of each row: an episode ends with it. None: episodes are not known."""
    broken_row: int | None = None
    """The first row that does not end an episode, and is followed by one that begins elsewhere."""
    n_step: int = 1
    """How many steps a row is over."""
    notices: tuple[str, ...] = ()
    """What the user should know."""

    @property
    def episodes(self) -> list[Array] | None:
        """The rewards of each complete episode, where episodes are known."""
        return None if self.ended is None else np.split(self.rewards, np.flatnonzero(self.ended) + 1)[:-1]

    def over(self, n_step: int, gamma: float | None) -> Self:
        """The same with rows over so many steps; rewards stay those of the rows as they were."""
        if n_step == self.n_step:
            return self
        if self.ended is None:
            raise ConfigError(
                f"n_step is {n_step}, and the episodes of the data are not known: row {self.broken_row} ends none, and "
                "the next row begins elsewhere; keep rows in order and mark cut-off episodes in truncations, or use "
                "n_step 1"
            )
        assert gamma is not None, "a configuration with n_step has γ"
        (whole,) = self.chunks()
        joined = joined_rows(whole, self.ended, n_step, gamma)
        if not len(joined.action):
            raise ConfigError(f"n_step is {n_step}, and no episode of the data is that long or terminates: lower it")
        return replace(self, rows=len(joined.action), chunks=lambda: [joined], n_step=n_step)


def checked_columns(given: Mapping[str, Any]) -> Columns:
    """The arrays of a data set, if they can be learned from."""
    found = ", ".join(map(str, given)) or "nothing"
    if missing := [name for name in NEEDED if name not in given]:
        raise ConfigError(
            f"the data set has {found}, and no {', '.join(missing)}: it needs {', '.join(NEEDED)}, and truncations "
            "where episodes were cut off"
        )
    arrays = {name: _array(name, given[name]) for name in (*NEEDED, *OPTIONAL) if given.get(name) is not None}
    count = len(arrays["observations"])
    for name, array in arrays.items():
        if len(array) != count:
            raise ConfigError(
                f"{name} has {len(array)} rows, observations has {count}: give one row for each transition in each"
            )
    if not count:
        raise ConfigError("the data set is empty: it has 0 rows; record some transitions first")
    observations, following = arrays["observations"], arrays["next_observations"]
    if not observations.size:
        raise ConfigError(f"observations has shape {observations.shape}: there is nothing in a row; give some numbers")
    if observations.shape != following.shape:
        raise ConfigError(
            f"observations has shape {observations.shape}, next_observations {following.shape}: they must be equal"
        )
    for name in ("observations", "next_observations"):
        _require_finite(name, arrays[name])
    return Columns(
        observations,
        _actions(_flat("actions", arrays["actions"])),
        _rewards(_flat("rewards", arrays["rewards"])),
        following,
        _flags("terminations", _flat("terminations", arrays["terminations"])),
        _flags("truncations", _flat("truncations", arrays.get("truncations", np.zeros(count, np.bool_)))),
    )


def data_of(columns: Columns, spec: EnvSpec, adapter: Adapter | None, reward_clip: bool) -> Data:
    """The data as an agent for `spec` learns from it."""
    observation, following = (_seen(columns, name, spec, adapter) for name in ("observations", "next_observations"))
    action = columns.actions - spec.first_action
    outside = (action < 0) | (action >= spec.num_actions)
    if outside.any():
        row = int(np.argmax(outside))
        raise ConfigError(
            f"row {row}: action {columns.actions[row]} is outside of {spec.first_action} … "
            f"{spec.first_action + spec.num_actions - 1}, the {spec.num_actions} actions of the environment "
            f"({int(outside.sum())} such rows): correct or drop them, or name the environment that they are from"
        )
    reward = np.clip(columns.rewards, -1, 1) if reward_clip else columns.rewards
    ended = columns.terminations | columns.truncations
    leads_on = _in_each_row(following[:-1] == observation[1:])
    broken = np.append(~ended[:-1] & ~leads_on, False)
    first = np.append(True, (ended | broken)[:-1])
    stream = np.zeros(len(action), np.int64)
    is_known = not broken.any()
    whole = Transitions(observation, action, reward, following, columns.terminations, stream, first)
    return Data(
        rows=len(action),
        chunks=lambda: [whole],
        rewards=reward,
        reward_abs_max=float(np.abs(reward).max()),
        ended=ended if is_known else None,
        broken_row=None if is_known else int(np.argmax(broken)),
        notices=tuple(_notices(columns)),
    )


def _notices(columns: Columns) -> list[str]:
    """What of the ends of episodes looks like a mistake."""
    terminations, truncations = columns.terminations, columns.truncations
    if not terminations.any():
        return [
            "no row of the data is a termination: returns do not end, and Q may come to r/(1−γ); that is right for a "
            "task without an end, else mark in terminations the rows with which episodes are over for good"
        ]
    lengths = np.diff(np.append(-1, np.flatnonzero(terminations)))
    longest = int(lengths.max())
    share = int((lengths == longest).sum())
    if truncations.any() or longest == 1 or share < max(LIKELY_LIMIT, len(lengths) / 2):
        return []
    return [
        f"{share} of {len(lengths)} episodes end in a termination after exactly {longest} steps, the most of all, and "
        "none in a truncation: if that is a time limit, mark those rows in truncations in place of terminations, "
        "because Q is wrong where returns are taken to end"
    ]


def _array(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ConfigError(f"{name} is no array: {error}; give rows of one shape") from error
    if array.dtype.kind not in "biuf":
        raise ConfigError(f"{name} has type {array.dtype}: it must be an array of numbers")
    if not array.ndim:
        raise ConfigError(f"{name} is {value!r}: it must have one row for each transition")
    return array


def _flat(name: str, array: Array) -> Array:
    """One number for each row; a column of them says the same."""
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        raise ConfigError(f"{name} has shape {array.shape}: it must have one number for each row, ({len(array)},)")
    return array.reshape(len(array))


def _in_each_row(true: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether all of a row is true."""
    return np.asarray(true.all(axis=tuple(range(1, true.ndim))))


def _require_finite(name: str, array: Array) -> None:
    bad = ~_in_each_row(np.isfinite(array))
    if bad.any():
        row = int(np.argmax(bad))
        raise ConfigError(
            f"row {row} of {name} is {array[row]}, in 32 bits: all numbers must be finite; correct or drop the "
            f"{int(bad.sum())} rows that are not"
        )


def _actions(array: Array) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore"):  # NaN is found below
        actions = array.astype(np.int64)
    wrong = actions != array
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ConfigError(f"row {row}: action {array[row]} is not a whole number; actions are numbered, 0, 1, 2, …")
    return actions


@np.errstate(over="ignore")  # 1e300 becomes infinite, and is found below
def _rewards(array: Array) -> NDArray[np.float32]:
    rewards = array.astype(np.float32)
    _require_finite("rewards", rewards)
    return rewards


def _flags(name: str, array: Array) -> NDArray[np.bool_]:
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ConfigError(f"row {row} of {name} is {array[row]}: it must be True or False, or 1 or 0")
    return array.astype(np.bool_)


@np.errstate(over="ignore")
def _seen(columns: Columns, name: str, spec: EnvSpec, adapter: Adapter | None) -> Array:
    """A column of observations as the networks see them."""
    given: Array = getattr(columns, name)
    try:
        batch, is_single = batch_of(given, spec.observation_shape, adapter)
        if is_single:
            raise ValueError("one observation, and not one for each row")
    except (TypeError, ValueError, LookupError) as error:
        wanted = f"(N, {', '.join(map(str, spec.observation_shape))})"
        if adapter is not None:
            wanted += f", or N of {adapter.source}"
        raise ConfigError(
            f"{name} has shape {given.shape} and type {given.dtype}, and the environment's has {wanted} ({error}): "
            "name the environment that the data is from, or none"
        ) from error
    seen = batch.astype(spec.observation_dtype)
    if np.issubdtype(spec.observation_dtype, np.floating):
        _require_finite(name, seen)
    else:
        wrong = ~_in_each_row(seen == batch)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ConfigError(
                f"row {row} of {name} has values that do not fit the environment's type, {spec.observation_dtype}: "
                "give observations as the environment shows them"
            )
    return seen
