"""Training on fixed data: the memory is filled once, and nothing is played.

A *step* is an update here: budgets, periods and schedules count updates. A checkpoint holds the whole memory, so that
a run is resumed without the data that it began with.
"""

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.envs.evaluation import OBSERVATION, carries
from cdqn.errors import CheckpointError, ConfigError
from cdqn.training.collector import Collected, Collector
from cdqn.training.events import Event
from cdqn.training.offline.columns import Data
from cdqn.training.trainer import Trainer


class OfflineTrainer(Trainer):
    """A run that learns from what `fill` was given, or from what its checkpoint holds."""

    def __init__(self, env: VectorEnv[Any, Any, Any], spec: EnvSpec, config: Config) -> None:
        if carries(env, OBSERVATION):
            raise ConfigError(
                f"the environment has {OBSERVATION}, which has not seen the data: drop it, and use the setting "
                "normalize_observations"
            )
        super().__init__(env, spec, config)
        self._prefetcher = None  # nothing is stepped meanwhile

    def fill(self, data: Data) -> None:
        """Take in all that there is to learn from."""
        self.calibrator.observe_data(data.rewards, data.episodes)
        self.tally.reward_abs_max = data.reward_abs_max
        for transitions in data.chunks():
            if self.normalizer is not None:
                self.normalizer.observe(transitions.observation)
            self.replay.add(transitions)

    def epsilon(self) -> float:
        """Nothing is played, by chance or otherwise."""
        return 0.0

    def load_state_dict(self, state: dict[str, Any]) -> str | None:
        """As online; the data is part of the state."""
        notice = super().load_state_dict(state)
        self._require_data()
        return notice

    def _make_collector(self, env: VectorEnv[Any, Any, Any]) -> Collector:
        return _Unplayed(env, self.spec, self.config.seed)

    def _advance(self) -> list[Event]:
        """One update."""
        self._require_data()
        found = self.calibrator.news(0) if self.steps == 0 else None
        self.collector.steps += 1
        self._learn()
        return [] if found is None else [found]

    def _require_data(self) -> None:
        if not len(self.replay):
            raise CheckpointError("the data of this run was never saved with it: begin it anew, from the data")

    def _updates_due(self, step: int) -> int:
        return step

    def _will_learn(self, step: int) -> bool:
        return self._updates_due(step) > self.learner.updates


class _Unplayed(Collector):
    """Stands in the collector's place: counts, and leaves the environment alone."""

    def step(self, actions: NDArray[np.int64]) -> Collected:
        raise AssertionError("a run on fixed data plays nothing")

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "episode_index": self._episode_index.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> str | None:
        self.require_as_many(state)
        self.steps = int(state["steps"])
        return None

    def _begin(self) -> NDArray[Any]:
        return np.zeros((self.env.num_envs, *self.spec.observation_shape), self.spec.observation_dtype)
