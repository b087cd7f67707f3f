"""Settings of the oscillator: the paper's, and what is refused."""

from typing import Any

import numpy as np

from cdqn.envs.oscillator.episodes import START_ENERGY_LIMIT
from cdqn.errors import ConfigError
from cdqn.tasks import oscillator as physics

ENERGY_LIMIT = 12.0
"""Of training; the paper tests with 100."""
TIME_LIMIT = 100.0
MAX_FORCE = 5.0


def check_settings(
    *,
    num_envs: int,
    observation: str,
    energy_limit: float,
    time_limit: float,
    max_force: float,
    reward_scale: float,
    observation_scale: float,
    render_mode: str | None,
) -> None:
    """Refuse what cannot work, with the setting's name and what it should be."""
    limit = f"above {START_ENERGY_LIMIT}, at which episodes may begin"
    control_step = "1/18, a control step, or more"
    pictures = "'rgb_array': it opens no window; use --video FILE.gif"
    _require(num_envs >= 1, "num_envs", num_envs, "at least 1")
    _require(observation in ("moments", "wavefunction"), "observation", observation, "'moments' or 'wavefunction'")
    _require(START_ENERGY_LIMIT < energy_limit < np.inf, "energy_limit", energy_limit, limit)
    _require(physics.CONTROL_PERIOD <= time_limit < np.inf, "time_limit", time_limit, control_step)
    _require(0 < max_force < np.inf, "max_force", max_force, "positive; it is in units of π")
    _require(0 < reward_scale < np.inf, "reward_scale", reward_scale, "positive")
    _require(0 < observation_scale < np.inf, "observation_scale", observation_scale, "positive")
    _require(render_mode in (None, "rgb_array"), "render_mode", render_mode, pictures)


def _require(condition: bool, name: str, value: Any, wanted: str) -> None:
    if not condition:
        raise ConfigError(f"{name} is {value!r}: the quartic oscillator wants it {wanted}")
