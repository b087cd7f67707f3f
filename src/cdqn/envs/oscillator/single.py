"""One trajectory of the quartic oscillator as an ordinary environment."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from cdqn.envs.oscillator.vector import PICTURES, Infos, Observation, QuarticOscillatorVectorEnv


class QuarticOscillatorEnv(gym.Env[Observation, np.int64]):
    """One trajectory of `QuarticOscillatorVectorEnv`, with the same settings, and bit for bit the same numbers."""

    metadata = dict(PICTURES)  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        self._vector = QuarticOscillatorVectorEnv(1, render_mode=render_mode, **settings)
        self.render_mode = render_mode
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Infos]:
        """Begin an episode; without a seed it is drawn from `np_random`."""
        super().reset(seed=seed)
        episode_seed = int(self.np_random.integers(2**63)) if seed is None else seed
        observation, infos = self._vector.reset(seed=[episode_seed])
        return observation[0], _first(infos)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Infos]:
        """One control step."""
        observation, reward, _, truncated, infos = self._vector.step(np.asarray(action)[None])
        return observation[0], float(reward[0]), False, bool(truncated[0]), _first(infos)

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """The probability density over the potential."""
        pictures = self._vector.render()
        return None if pictures is None else pictures[0]

    def state_dict(self) -> dict[str, Any]:
        """All that changes, the generator of seeds included."""
        return self._vector.state_dict() | {"seeds_rng": self.np_random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self._vector.load_state_dict(state)
        self.np_random.bit_generator.state = state["seeds_rng"]


def _first(infos: Infos) -> Infos:
    return {name: value[0].item() for name, value in infos.items()}
