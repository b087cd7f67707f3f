"""States of the quartic oscillator that several test files look at."""

import numpy as np

from cdqn.tasks import oscillator as physics

FORCES = np.linspace(-5, 5, 21)


def still(count):
    """The action of no force, for a propagator made without actions."""
    return np.zeros(count, np.int64)


def lively_states(basis, count=32, steps=40, seed=0):
    """States far from Gaussian: packets, pushed about and measured."""
    rng = np.random.default_rng(seed)
    propagator = physics.make_propagator(basis, 4, FORCES)
    states = physics.gaussian_packets(basis, rng.uniform(-1.9, 1.9, count))
    for _ in range(steps):
        noise = rng.standard_normal((count, 4))
        states = physics.control_step(propagator, states, rng.integers(5, 16, count), noise).amplitudes_BN
    return states
