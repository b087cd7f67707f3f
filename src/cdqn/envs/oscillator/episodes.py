"""An episode's first state and its random numbers: functions of its seed, whatever the other trajectories do."""

import numpy as np
from numpy.typing import NDArray

from cdqn.tasks import oscillator as physics

START_ENERGY_LIMIT = 7.5
START_WAVE_NUMBER = 0.3
"""Largest, in waves per unit of length: the momentum is 2π times it."""
START_TIME = (15.0, 20.0)
"""Shortest and longest time of measurement without control before an episode."""
START, NOISE = range(2)
"""What the random numbers of a seed are for."""

_ROWS = 8
"""Rows are filled up to a multiple of this."""


def draw_starts(basis: physics.Basis, warm_up: physics.Propagator, seeds: NDArray[np.uint64]) -> physics.Amplitudes:
    """First states of episodes: packets, measured without control, drawn again where the energy is too high."""
    amplitudes_BN = ground_states(len(seeds), basis.size)
    open_B = np.arange(len(seeds))
    attempt = 0
    while len(open_B):
        rows = whole_blocks(len(open_B))
        wave_number_B, count_B = np.zeros(rows), np.ones(rows, np.int64)
        noise_BT = np.zeros((rows, _control_steps(START_TIME[1])))
        for row, seed in enumerate(seeds[open_B]):
            rng = generator(int(seed), START, attempt)
            wave_number_B[row] = rng.uniform(-START_WAVE_NUMBER, START_WAVE_NUMBER)
            count_B[row] = _control_steps(rng.uniform(*START_TIME))
            noise_BT[row, : count_B[row]] = rng.standard_normal(count_B[row])
        packets_BN = physics.gaussian_packets(basis, 2 * np.pi * wave_number_B)
        started_BN = physics.free_evolution(warm_up, packets_BN, count_B, noise_BT)
        good_B = physics.energies(basis, started_BN) < START_ENERGY_LIMIT
        good_B &= physics.edge_population(started_BN) < physics.EDGE_POPULATION
        good_B = good_B[: len(open_B)]
        amplitudes_BN[open_B[good_B]] = started_BN[: len(open_B)][good_B]
        open_B = open_B[~good_B]
        attempt += 1
    return amplitudes_BN


def generator(seed: int, purpose: int, number: int) -> np.random.Generator:
    """Of an episode's start, or of a block of its noise: the same whenever it is asked for."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, number)))


def _control_steps(time: float) -> int:
    """Whole control steps of a time, rounded up."""
    return int(np.ceil(time / physics.CONTROL_PERIOD))


def whole_blocks(rows: int) -> int:
    """So many rows, filled up to whole blocks."""
    return -(-rows // _ROWS) * _ROWS


def ground_states(rows: int, size: int) -> physics.Amplitudes:
    """So many rows of the state of the lowest energy."""
    return np.eye(1, size, dtype=np.complex128).repeat(rows, axis=0)
