"""What is found at the end of the warm-up: γ, μ and σ (App. E.3), or the scale of rewards alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.calibration import Numbers, denormalize, normalized_reward
from cdqn.errors import ConfigError
from cdqn.replay import Batch, Transitions
from cdqn.training.events import Calibrated
from cdqn.training.metrics import value_bound
from cdqn.training.warmup import Calibration, RewardRecord, RewardScale, calibrate


class Calibrator:
    """Records the rewards of the warm-up, then knows what to normalise with.

    With a multiplier c̃_γ that is γ, μ and σ; with `normalize_rewards` the scale of rewards; else nothing.
    """

    def __init__(
        self,
        num_envs: int,
        warmup_steps: int,
        gamma: float | None,
        horizon_multiplier: float | None,
        normalize_rewards: bool = False,
    ) -> None:
        self.gamma = gamma
        """γ; None while it is yet to be found."""
        self.found: Calibration | None = None
        self._num_envs = num_envs
        self._warmup_steps = warmup_steps
        self._multiplier = horizon_multiplier
        self._record = RewardRecord(num_envs) if horizon_multiplier else None
        self._scale = RewardScale() if normalize_rewards else None

    def observe(self, step: int, transitions: Transitions, ended: NDArray[np.bool_]) -> Calibrated | None:
        """Look at what was collected up to `step`; at the end of the warm-up say what was found."""
        if self._scale is not None and self.gamma is not None:
            self._scale.add(transitions.reward)
            return self._take(step, self._scale.calibration(self.gamma)) if step >= self._warmup_steps else None
        if self._record is None or self._multiplier is None:
            return None
        columns = (transitions.reward, transitions.terminated | ended, ended, np.ones_like(ended))
        self._record.add(*(self._by_environment(column, transitions.stream) for column in columns))
        if step < self._warmup_steps:
            return None
        return self._take(step, calibrate(self._record, self._multiplier))

    def observe_data(self, rewards: NDArray[Any], episodes: Sequence[NDArray[Any]] | None) -> None:
        """All rewards of fixed data in the place of the warm-up's; `episodes`: those of whole ones, where known."""
        if self._scale is not None and self.gamma is not None:
            self._scale.add(rewards)
            self._take(0, self._scale.calibration(self.gamma))
        if self._record is None or self._multiplier is None:
            return
        if episodes is None:
            raise ConfigError(
                f"horizon_multiplier {self._multiplier:g} finds γ from whole episodes, and those of this data are not "
                "known: give gamma instead"
            )
        self._record.lives = self._record.games = [rewards.astype(np.float64) for rewards in episodes]
        self._take(0, calibrate(self._record, self._multiplier))

    def normalized(self, batch: Batch) -> Batch:
        """r̂ in the place of r, where Q is normalised: rewards stay raw in memory."""
        if self.found is None:
            return batch
        reward = normalized_reward(batch.reward, batch.terminated, self.found.gamma, self.found.normalization)
        return batch._replace(reward=reward)

    def q_bound(self, reward_abs_max: float) -> float | None:
        """The largest |Q| that can be right."""
        return None if self.gamma is None else value_bound(reward_abs_max, self.gamma)

    def raw_q(self, q: Numbers) -> Numbers:
        """A learned value in units of the rewards."""
        return q if self.found is None else denormalize(q, self.found.normalization)

    @property
    def unit(self) -> float:
        """How much of Q one unit of the learned one stands for."""
        return 1.0 if self.found is None else self.found.scale

    def restart(self) -> None:
        """The environments were begun anew: what follows does not belong to the open episodes."""
        if self._record is not None:
            self._record.drop_open()

    def state_dict(self) -> dict[str, Any]:
        """What has been recorded, or found."""
        return {
            "found": None if self.found is None else self.found._asdict(),
            "record": None if self._record is None else self._record.state_dict(),
            "scale": None if self._scale is None else self._scale.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a saved state."""
        if state["found"] is not None:
            self._take(0, Calibration(**state["found"]))
        elif self._scale is not None:
            self._scale.load_state_dict(state["scale"])
        elif self._record is not None:
            self._record.load_state_dict(state["record"])

    def _take(self, step: int, found: Calibration) -> Calibrated | None:
        """Normalise with this from now on; the event that says so, unless nothing changes by it."""
        self.found, self.gamma, self._record, self._scale = found, found.gamma, None, None
        return self.news(step)

    def news(self, step: int) -> Calibrated | None:
        """The event that says what was found; None where it changes nothing, or nothing was."""
        if self.found is None or not (self._multiplier or self.found.scale != 1):
            return None
        return Calibrated(step, self.found)

    def _by_environment(self, column: NDArray[Any], stream: NDArray[np.int64]) -> NDArray[Any]:
        """One entry for each environment; zero where there is no transition."""
        whole = np.zeros(self._num_envs, column.dtype)
        whole[stream] = column
        return whole
