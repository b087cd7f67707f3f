"""App. E.3 during a run: γ, μ and σ are found at the end of the warm-up, and rewards normalised from then on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.calibration import Calibration, RewardRecord, calibrate, normalized_reward
from cdqn.metrics import Calibrated, value_bound
from cdqn.replay import Batch, Transitions


class Calibrator:
    """Records the rewards of the warm-up, then knows γ, μ and σ; without a multiplier c̃_γ it leaves all as it is."""

    def __init__(self, num_envs: int, warmup_steps: int, gamma: float | None, horizon_multiplier: float | None) -> None:
        self.gamma = gamma
        """γ; None while it is yet to be found."""
        self.found: Calibration | None = None
        self._num_envs = num_envs
        self._warmup_steps = warmup_steps
        self._multiplier = horizon_multiplier
        self._record = RewardRecord(num_envs) if horizon_multiplier else None

    def observe(self, step: int, transitions: Transitions, ended: NDArray[np.bool_]) -> Calibrated | None:
        """Look at what was collected up to `step`; at the end of the warm-up say what was found."""
        if self._record is None or self._multiplier is None:
            return None
        columns = (transitions.reward, transitions.terminated | ended, ended, np.ones_like(ended))
        self._record.add(*(self._by_environment(column, transitions.stream) for column in columns))
        if step < self._warmup_steps:
            return None
        found = calibrate(self._record, self._multiplier)
        self._take(found)
        return Calibrated(step, found)

    def normalized(self, batch: Batch) -> Batch:
        """r̂ in the place of r, where Q is normalised: rewards stay raw in memory."""
        if self.found is None:
            return batch
        reward = normalized_reward(batch.reward, batch.terminated, self.found.gamma, self.found.normalization)
        return batch._replace(reward=reward)

    def q_bound(self, reward_abs_max: float) -> float | None:
        """The largest |Q| that can be right, in the units the network learns."""
        bound = None if self.gamma is None else value_bound(reward_abs_max, self.gamma)
        if bound is None or self.found is None:
            return bound
        return (bound + abs(self.found.mean)) / self.found.scale

    def restart(self) -> None:
        """The environments were begun anew: what follows does not belong to the open episodes."""
        if self._record is not None:
            self._record.drop_open()

    def state_dict(self) -> dict[str, Any]:
        """What has been recorded, or found."""
        return {
            "found": None if self.found is None else self.found._asdict(),
            "record": None if self._record is None else self._record.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a saved state."""
        if state["found"] is not None:
            self._take(Calibration(**state["found"]))
        elif self._record is not None:
            self._record.load_state_dict(state["record"])

    def _take(self, found: Calibration) -> None:
        self.found, self.gamma, self._record = found, found.gamma, None

    def _by_environment(self, column: NDArray[Any], stream: NDArray[np.int64]) -> NDArray[Any]:
        """One entry for each environment; zero where there is no transition."""
        whole = np.zeros(self._num_envs, column.dtype)
        whole[stream] = column
        return whole
