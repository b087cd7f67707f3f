"""Observations brought to mean 0 and variance 1 on their way into the networks.

The replay memory keeps them raw: what was collected long ago is seen with the statistics of now, and so are both
networks. Statistics are gathered while training alone, of every observation that was acted upon.
"""

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.envs.evaluation import OBSERVATION, carries
from cdqn.envs.factory import NAMES
from cdqn.errors import ConfigError
from cdqn.replay import Batch

CLIP = 10.0
"""Where normalised numbers end. A feature that was constant for long has almost no variance, and its first change would
otherwise be hundreds; of numbers that are spread at all, hardly any is ten deviations from the mean."""
ROUNDING = 3e-7
"""A deviation below this share of the mean is the rounding of 32 bits, and is not blown up to 1."""


class ObservationNormalizer:
    """(x − mean)/deviation of each feature, over all observations so far, in 32 bits; the statistics are in 64."""

    def __init__(self, features: int) -> None:
        self._count = 0
        self._mean_F = np.zeros(features)
        self._squares_F = np.zeros(features)
        """Σ (x − mean)²"""
        self.mean_F = np.zeros(features, np.float32)
        self.factor_F = np.ones(features, np.float32)
        """1/deviation; 1 for what has never changed."""

    def observe(self, observation_NF: NDArray[Any]) -> None:
        """Take these into the statistics, by the rule of Chan, Golub & LeVeque (1983) for two sets in one."""
        count = len(observation_NF)
        if not count:
            return
        x_NF = observation_NF.astype(np.float64)
        mean_F = x_NF.sum(0) / count
        x_NF -= mean_F
        gap_F = mean_F - self._mean_F
        total = self._count + count
        self._squares_F += np.einsum("nf,nf->f", x_NF, x_NF) + gap_F * gap_F * (self._count * count / total)
        self._mean_F += gap_F * (count / total)
        self._count = total
        self._settle()

    @np.errstate(over="ignore")  # beyond 32 bits is beyond the clip as well
    def __call__(self, observation_BF: NDArray[Any]) -> NDArray[np.float32]:
        """Normalised and clipped."""
        x_BF: NDArray[np.float32] = np.subtract(observation_BF, self.mean_F, dtype=np.float32)
        x_BF *= self.factor_F
        np.maximum(x_BF, -CLIP, out=x_BF)
        np.minimum(x_BF, CLIP, out=x_BF)
        return x_BF

    def normalized(self, batch: Batch) -> Batch:
        """A batch as the networks see it."""
        return batch._replace(observation=self(batch.observation), next_observation=self(batch.next_observation))

    def state_dict(self) -> dict[str, Any]:
        """The statistics."""
        return {"count": self._count, "mean": self._mean_F.copy(), "squares": self._squares_F.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._count = int(state["count"])
        self._mean_F[:], self._squares_F[:] = state["mean"], state["squares"]
        self._settle()

    def _settle(self) -> None:
        if not self._count:
            return
        deviation_F = np.maximum(np.sqrt(self._squares_F / self._count), ROUNDING * np.abs(self._mean_F))
        deviation_F[deviation_F == 0] = 1
        self.mean_F[:] = self._mean_F
        self.factor_F[:] = 1 / deviation_F


def make_normalizer(env: VectorEnv[Any, Any, Any], spec: EnvSpec, config: Config) -> ObservationNormalizer | None:
    """What `normalize_observations` asks for; None where it is off."""
    own = carries(env, OBSERVATION)
    if config.candidate_period_steps is not None and (own or config.normalize_observations):
        raise ConfigError(
            f"candidate_period_steps {config.candidate_period_steps} keeps weights alone, without the statistics of "
            f"{OBSERVATION if own else 'normalize_observations'}: drop one of the two"
        )
    if not config.normalize_observations:
        return None
    if spec.kind != "vector":
        raise ConfigError(
            f"normalize_observations is for vectors, and this environment shows {NAMES[spec.kind]}, "
            "whose numbers are scaled already: drop it"
        )
    if own:
        raise ConfigError(f"normalize_observations is on, and the environment has {OBSERVATION} too: drop the latter")
    return ObservationNormalizer(*spec.observation_shape)
