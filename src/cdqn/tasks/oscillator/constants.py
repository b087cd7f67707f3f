"""The numbers of App. B.1, and the arrays that all of the oscillator's modules speak of."""

import numpy as np
from numpy.typing import NDArray

MASS = 1 / np.pi
QUARTIC = np.pi / 25
MEASUREMENT = 0.01 * np.pi
"""γ, the strength of the measurement."""
FORCE_UNIT = np.pi
"""F = π·f."""
NUM_ACTIONS = 21
CONTROL_PERIOD = 1 / 18
MOMENT_ORDER = 5
NUM_MOMENTS = 20
EDGE_STATES = 4
"""The highest states: a trajectory that populates them has outgrown the basis."""
EDGE_POPULATION = 1e-4
STEP_ERROR = 1e-7
"""Infidelity of a control step at which the energy that LQG reaches is wrong by some 0.2 %."""

Reals = NDArray[np.float64]
Amplitudes = NDArray[np.complex128]
