"""The numbers of App. B.1."""

import numpy as np

from cdqn.tasks import oscillator as physics
from cdqn.tasks.oscillator import CONTROL_PERIOD, FORCE_UNIT, MASS, MEASUREMENT, QUARTIC


def test_constants_are_those_of_the_paper():
    np.testing.assert_allclose([MASS, QUARTIC, MEASUREMENT], [1 / np.pi, np.pi / 25, 0.01 * np.pi], rtol=1e-15)
    np.testing.assert_allclose([FORCE_UNIT, CONTROL_PERIOD, physics.NUM_ACTIONS], [np.pi, 1 / 18, 21], rtol=1e-15)
