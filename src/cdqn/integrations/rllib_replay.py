"""The paper's floor and cap in a prioritized buffer of RLlib."""

from typing import Any

import numpy as np
from ray.rllib.utils.replay_buffers.prioritized_episode_buffer import PrioritizedEpisodeReplayBuffer

from cdqn.replay import priorities as rules


class FlooredEpisodeReplayBuffer(PrioritizedEpisodeReplayBuffer):  # type: ignore[misc]
    """RLlib's prioritized buffer with the paper's floor of the priorities and cap of the weights (App. E.2)."""

    def __init__(self, *args: Any, floor_divisor: float = 10.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._floor_divisor = floor_divisor

    def sample(self, *args: Any, beta: float = 0.0, **kwargs: Any) -> Any:
        # The host divides its weights by the largest; the paper's are not normalized, but end at a cap.
        smallest = self._min_segment.min() / self._mean_priority()
        episodes = super().sample(*args, beta=beta, **kwargs)
        largest, cap = smallest**-beta, rules.largest_weight(self._floor_divisor)
        for episode in episodes:
            weights = np.asarray(episode.get_extra_model_outputs("weights"))
            episode.set_extra_model_outputs(key="weights", new_data=np.minimum(weights * largest, cap))
        return episodes

    def update_priorities(self, priorities: Any, module_id: Any = None) -> None:
        floor = rules.floor(self._mean_priority(), self._floor_divisor)
        least = floor ** (1 / self._alpha) if self._alpha > 0 else 0.0
        super().update_priorities(np.maximum(priorities, least), module_id)

    def _mean_priority(self) -> float:
        mean: float = self._sum_segment.sum() / max(1, self.get_num_timesteps())
        return mean
