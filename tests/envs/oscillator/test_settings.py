"""The oscillator's settings: the paper's, and those that are refused."""

import numpy as np
import pytest

from cdqn.envs import make_vec
from cdqn.envs.oscillator import QuarticOscillatorVectorEnv
from cdqn.errors import ConfigError

ID = "cdqn/QuarticOscillator-v0"


def test_window_is_refused_by_name_with_what_to_do_instead():
    with pytest.raises(ConfigError, match=r"render_mode is 'human'.*--video FILE.gif"):
        make_vec(ID, 1, render_mode="human")


def test_defaults_are_those_of_the_paper():
    env = QuarticOscillatorVectorEnv(1)
    np.testing.assert_allclose(env.force_A, np.arange(-5, 5.5, 0.5))
    assert (env.energy_limit, env.reward_scale, env.observation_scale) == (12.0, 0.01, 0.1)
    assert env.time_limit_steps == 1800
    assert (env.basis.size, env._propagator.substeps) == (40, 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"observation": "position"}, "observation is 'position'.*'moments' or 'wavefunction'"),
        ({"energy_limit": 7.0}, r"energy_limit is 7.0.*above 7.5"),
        ({"energy_limit": float("nan")}, "energy_limit is nan"),
        ({"time_limit": 0.01}, "time_limit is 0.01"),
        ({"max_force": -1.0}, "max_force is -1.0"),
        ({"reward_scale": 0.0}, "reward_scale is 0.0"),
        ({"observation_scale": 0.0}, "observation_scale is 0.0"),
        ({"basis_size": 3}, "basis_size is 3"),
        ({"basis_size": 12}, "basis_size 12 is too small for energy_limit 12: raise basis_size to 16"),
        ({"basis_size": 24, "energy_limit": 100.0}, "basis_size 24 is too small for energy_limit 100"),
        ({"substeps": 1}, "substeps 1 is too coarse for max_force 5: raise substeps to 2"),
        ({"substeps": 0}, "substeps is 0"),
        ({"max_force": 60.0}, "substeps 4 is too coarse for max_force 60"),
    ],
)
def test_setting_that_cannot_work_is_answered_with_the_number_to_change(settings, message):
    with pytest.raises(ConfigError, match=message):
        QuarticOscillatorVectorEnv(**{"num_envs": 2, **settings})
