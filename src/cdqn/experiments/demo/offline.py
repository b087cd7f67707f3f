"""Offline training: all that is learned comes from a fixed set of transitions.

Algorithms that are given the same set differ in nothing but how they learn from it: no policy of theirs
decides what they will see next.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.config import Config
from cdqn.envs import EnvSpec, describe, make_vec
from cdqn.errors import ConfigError, NonFiniteError
from cdqn.replay import Replay, Transitions
from cdqn.schedules import importance_exponent
from cdqn.training.actor import Actor
from cdqn.training.build import make_learner, make_replay
from cdqn.training.collector import Collector
from cdqn.training.evaluation import evaluate
from cdqn.training.learner import Learner
from cdqn.training.metrics import Tally
from cdqn.training.normalizer import ObservationNormalizer, make_normalizer

COLLECTING_ENVS = 4
EVALUATION_ENVS = 10

# Each use of a seed draws from a stream of its own; evaluation has the one that `Agent.evaluate` has.
_EVALUATION, _POLICY, _REPLAY = (2,), (3,), (4,)


@dataclass(frozen=True)
class OfflineData:
    """A fixed set of transitions, and the environment they come from."""

    env_id: str
    spec: EnvSpec
    transitions: Transitions
    steps_played: int
    """How many transitions the environment gave for those that were kept."""

    def __len__(self) -> int:
        return len(self.transitions.action)

    @property
    def reward_abs_max(self) -> float:
        return float(np.abs(self.transitions.reward).max())

    def digest(self) -> str:
        """SHA-256 of every field of every row, in order: equal digests, equal data."""
        sha = hashlib.sha256()
        for column in self.transitions:
            sha.update(f"{column.dtype.str}{column.shape}".encode())
            sha.update(np.ascontiguousarray(column).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True)
class History:
    """What offline training recorded; NaN from where the numbers ceased to be finite."""

    update_T: NDArray[np.int64]
    """Updates done at each record; means are over the updates since the record before."""
    loss_T: NDArray[np.float64]
    """Mean squared error of the branch taken."""
    q_T: NDArray[np.float64]
    """Mean of max Q(s), in units of Q."""
    dqn_share_T: NDArray[np.float64]
    """Share of samples whose gradient was that of DQN's loss."""
    evaluation_update_E: NDArray[np.int64]
    """Updates done at each evaluation, the first before any."""
    return_E: NDArray[np.float64]
    """Mean return of the greedy policy."""

    @property
    def largest_q(self) -> float:
        """The largest |q| of all records; infinite where one is not a number."""
        return float(np.abs(np.where(np.isnan(self.q_T), np.inf, self.q_T)).max())


def collect_random(env_id: str, transitions: int, seed: int, discard_fraction: float = 0.5) -> OfflineData:
    """Play a uniformly random policy until `transitions` are kept; each one is dropped with `discard_fraction`.

    A dropped transition is gone for good, so the one after it often lacks its past and the one before it its
    future: the data of Sec. 5.2 on which DQN is prone to diverge.
    """
    if transitions < 1 or not 0 <= discard_fraction < 1:
        raise ConfigError(
            f"asked for {transitions} transitions with discard_fraction {discard_fraction}: ≥ 1 and within [0, 1)"
        )
    rng = _generator(seed, _POLICY)
    env = make_vec(env_id, COLLECTING_ENVS)
    try:
        spec = describe(env)
        collector = Collector(env, spec, seed)
        has_past_N = np.zeros(env.num_envs, dtype=bool)  # whether the last transition of each stream was kept
        pieces: list[Transitions] = []
        kept = 0
        while kept < transitions:
            rows = collector.step(rng.integers(spec.num_actions, size=env.num_envs)).transitions
            keep_N = rng.random(len(rows.action)) >= discard_fraction
            rows = rows._replace(first=rows.first | ~has_past_N[rows.stream])
            has_past_N[rows.stream] = keep_N
            pieces.append(Transitions(*(column[keep_N] for column in rows)))
            kept += int(keep_N.sum())
    finally:
        env.close()
    columns = (np.concatenate(column)[:transitions] for column in zip(*pieces, strict=True))
    return OfflineData(env_id, spec, Transitions(*columns), collector.steps)


def train_offline(
    data: OfflineData,
    config: Config,
    updates: int,
    *,
    record_every: int,
    evaluate_every: int,
    evaluation_episodes: int,
    on_progress: Callable[[int], None] | None = None,
) -> History:
    """Train on `data` alone, which all fits in memory; `on_progress` is told the updates done at each record.

    Weights, sampling and evaluation depend on `config.seed`. Settings of the data (`memory_size`,
    `discard_fraction`, exploration) have no part in it. Training that is no longer finite ends there.
    """
    _check_counts(updates, record_every, evaluate_every, evaluation_episodes)
    config = config.resolved()
    learner = _make_learner(data.spec, config, updates)
    replay = _fill_replay(data, config)
    env = make_vec(data.env_id, min(EVALUATION_ENVS, evaluation_episodes))
    actor = Actor(learner, normalizer := _normalizer_of(data, env, config))
    evaluation_seed = int(np.random.SeedSequence(config.seed, spawn_key=_EVALUATION).generate_state(1)[0])
    tally, finite = Tally(), True
    records: list[tuple[int, float, float, float]] = []
    evaluations: list[tuple[int, float]] = []

    def record_evaluation(update: int) -> None:
        # The same seed each time: the curve shows the policy change, not the starting states.
        result = evaluate(actor, env, data.spec, evaluation_episodes, seed=evaluation_seed) if finite else None
        evaluations.append((update, result.mean if result else np.nan))

    try:
        record_evaluation(0)
        for update in range(1, updates + 1):
            if finite:
                finite = _update(learner, replay, tally, _beta(config, update, updates), normalizer)
            if update % record_every == 0 or update == updates:
                records.append((update, *_means(tally)))
                if on_progress:
                    on_progress(update)
            if update % evaluate_every == 0 or update == updates:
                record_evaluation(update)
    finally:
        env.close()
    return History(*_columns(records), *_columns(evaluations))


def _make_learner(spec: EnvSpec, config: Config, updates: int) -> Learner:
    learner = make_learner(spec, config)
    learner.choose_backend(updates)
    return learner


def _fill_replay(data: OfflineData, config: Config) -> Replay:
    whole = dataclasses.replace(config, memory_size=max(len(data), config.batch_size), discard_fraction=0.0)
    replay = make_replay(data.spec, whole, _generator(config.seed, _REPLAY))
    replay.add(data.transitions)
    return replay


def _normalizer_of(data: OfflineData, env: Any, config: Config) -> ObservationNormalizer | None:
    """All that it will ever see is there from the beginning."""
    normalizer = make_normalizer(env, data.spec, config)
    if normalizer is not None:
        normalizer.observe(data.transitions.observation)
    return normalizer


def _update(
    learner: Learner, replay: Replay, tally: Tally, beta: float, normalizer: ObservationNormalizer | None
) -> bool:
    """One update; False when it was the last that could be computed."""
    batch = replay.sample(learner.config.batch_size, beta)
    result = learner.update(batch if normalizer is None else normalizer.normalized(batch))
    tally.add_update(result)
    try:
        replay.update_priorities(batch.slots, result.td_error_abs)
    except NonFiniteError:
        return False
    return True


def _means(tally: Tally) -> tuple[float, float, float]:
    means = tally.take_means()
    return means.get("loss", np.nan), means.get("q_mean", np.nan), means.get("dqn_share", np.nan)


def _columns(rows: Sequence[tuple[float, ...]]) -> list[NDArray[Any]]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def _beta(config: Config, update: int, updates: int) -> float:
    return importance_exponent(update, updates, 1.0 if config.beta_start is None else config.beta_start)


def _generator(seed: int, stream: tuple[int, ...]) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))


def _check_counts(updates: int, record_every: int, evaluate_every: int, evaluation_episodes: int) -> None:
    counts = {
        "updates": updates,
        "record_every": record_every,
        "evaluate_every": evaluate_every,
        "evaluation_episodes": evaluation_episodes,
    }
    for name, value in counts.items():
        if value < 1:
            raise ConfigError(f"{name} is {value}: it must be a whole number of at least 1")
