"""Too small a basis and too coarse a step are refused with a number that is enough."""

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.tasks import oscillator as physics
from oscillator_states import FORCES


def test_basis_too_small_for_the_energy_is_answered_with_a_size_that_is_enough(basis):
    physics.require_room(basis, 100)
    with pytest.raises(ConfigError, match=r"basis_size 12 .*energy_limit 12: raise basis_size to 16") as caught:
        physics.require_room(physics.make_basis(12), 12)
    assert "lower energy_limit" in str(caught.value)
    physics.require_room(physics.make_basis(16), 12)
    with pytest.raises(ConfigError, match="basis_size 40 is too small for energy_limit 200"):
        physics.require_room(basis, 200)
    with pytest.raises(ConfigError, match="basis_size is 4"):
        physics.make_basis(4)


def test_step_too_coarse_for_the_force_is_answered_with_a_number_that_is_enough(basis):
    physics.require_fine_steps(physics.make_propagator(basis, 4, FORCES), 5.0)
    with pytest.raises(ConfigError, match="substeps 1 is too coarse for max_force 5: raise substeps to 2"):
        physics.require_fine_steps(physics.make_propagator(basis, 1, FORCES), 5.0)
    physics.require_fine_steps(physics.make_propagator(basis, 2, FORCES), 5.0)
    with pytest.raises(ConfigError, match="substeps is 0"):
        physics.make_propagator(basis, 0)


def test_error_of_a_step_falls_with_the_fourth_power_of_its_length(basis):
    """A symmetric split: amplitudes are wrong by the second power, and the infidelity by its square."""
    errors = [physics.step_error(physics.make_propagator(basis, substeps), 5.0) for substeps in (1, 2, 4)]
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 16, rtol=0.1)
