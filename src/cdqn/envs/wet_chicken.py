"""Wet chicken (Tresp 1994): a canoeist is paid for being near a waterfall, and swept back to the start by it.

The turbulence is stronger than the paddle, so that neighbouring states have very different futures: a task on which
residual-gradient methods fail (App. A.1). `import cdqn` registers it as `cdqn/WetChicken-v0`.
"""

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError

WATERFALL = 20.0
TURBULENCE = 2.5
NUM_ACTIONS = 3
"""Paddle back, hold, drift: −1, 0, +1."""


def next_position(x: ArrayLike, action: ArrayLike, noise: ArrayLike) -> NDArray[np.float64]:
    """x′ = x + a + z, App. A.1, for many canoes at once: no further back than 0, and 0 for whoever falls.

    `action` counts from 0, and `noise` is z ~ U(−2.5, 2.5). The reward is x′.
    """
    moved = np.asarray(x) + (np.asarray(action) - 1) + np.asarray(noise)
    return np.where((moved < 0) | (moved >= WATERFALL), 0.0, moved)


class WetChickenEnv(gym.Env[NDArray[np.float32], np.int64]):
    """Position on the river, three actions, reward the position reached. It never terminates.

    The average reward per step is what counts; the time limit of `cdqn/WetChicken-v0` is the 300 steps for which
    the paper tests a policy.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's way)

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode is {render_mode!r}: wet chicken is drawn as text only, 'ansi'")
        self.render_mode = render_mode
        # The largest float below the waterfall: a position is never at it.
        highest = np.nextafter(np.float32(WATERFALL), np.float32(0))
        self.observation_space = Box(0.0, highest, (1,), np.float32)
        self.action_space = Discrete(NUM_ACTIONS)
        self._x = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Back to x = 0."""
        super().reset(seed=seed, options=options)
        self._x = 0.0
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        """One stroke of the paddle, and the turbulence."""
        noise = self.np_random.uniform(-TURBULENCE, TURBULENCE)
        self._x = float(next_position(self._x, action, noise))
        return self._observation(), self._x, False, False, {}

    def render(self) -> str | None:  # type: ignore[override]
        """The river from above, with the waterfall at its right end."""
        if self.render_mode is None:
            return None
        river = ["~"] * int(WATERFALL)
        river[int(self._x)] = "o"
        return f"{''.join(river)}| {self._x:.2f}"

    def _observation(self) -> NDArray[np.float32]:
        # A position within half a float32 step of the waterfall must not be rounded onto it.
        return np.minimum(np.array([self._x], np.float32), self.observation_space.high)  # type: ignore[attr-defined]
