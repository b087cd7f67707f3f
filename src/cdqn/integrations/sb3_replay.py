"""The paper's prioritized replay in a buffer of Stable-Baselines3: the host keeps the rows, we say which are drawn."""

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.buffers import ReplayBuffer
from torch import Tensor

from cdqn.errors import ConfigError
from cdqn.replay import PrioritizedReplay
from cdqn.replay.slots import SlotsOnly, rows_without_content


class PrioritizedSamples(NamedTuple):
    """The host's samples, with importance weights, and where the rows lie in memory."""

    observations: Tensor
    actions: Tensor
    next_observations: Tensor
    dones: Tensor
    rewards: Tensor
    discounts: Tensor | None
    weights: Tensor
    slots: Any


class PrioritizedReplayBuffer(ReplayBuffer):
    """The host's replay buffer, from which rows are drawn by the paper's priorities (App. E.2), with any number of
    environments. `priorities` are arguments of `cdqn.replay.PrioritizedReplay`; β rises from `beta_start` to 1.
    """

    def __init__(self, *args: Any, beta_start: float = 0.4, priorities: dict[str, Any] | None = None, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.optimize_memory_usage:
            raise ConfigError("optimize_memory_usage has no prioritized replay: leave it out")
        self.beta_start, self.beta = beta_start, beta_start
        rng = np.random.default_rng(np.random.randint(2**31))  # noqa: NPY002  seeded by the host, globally
        self._order = PrioritizedReplay(SlotsOnly(self.buffer_size * self.n_envs), rng=rng, **(priorities or {}))
        self._begins = np.ones(self.n_envs, np.bool_)

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        super().add(obs, next_obs, action, reward, done, infos)
        self._order.add(rows_without_content(np.arange(self.n_envs), self._begins))
        self._begins = np.array(done, np.bool_)

    def set_progress(self, progress: float) -> None:
        """How much of the training is over: β is 1 at its end."""
        self.beta = min(1.0, self.beta_start + (1 - self.beta_start) * progress)

    def sample(self, batch_size: int, env: Any = None) -> Any:
        drawn = self._order.sample(batch_size, self.beta)
        at = np.divmod(drawn.slots, self.n_envs)
        columns = (
            self._normalize_obs(self.observations[at], env),
            self.actions[at],
            self._normalize_obs(self.next_observations[at], env),
            (self.dones[at] * (1 - self.timeouts[at])).reshape(-1, 1),
            self._normalize_reward(self.rewards[at].reshape(-1, 1), env),
        )
        weights = self.to_torch(drawn.weight)
        return PrioritizedSamples._make([*map(self.to_torch, columns), None, weights, drawn.slots])

    def update_priorities(self, slots: Any, td_error_abs: Tensor) -> None:
        """|δ| of the rows that `sample` gave under these slots."""
        self._order.update_priorities(slots, td_error_abs.cpu().numpy())
