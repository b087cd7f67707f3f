"""Settings that the basis or the substeps are too coarse for are refused, with the number that is enough."""

import numpy as np

from cdqn.errors import ConfigError
from cdqn.tasks.oscillator.basis import Basis, make_basis
from cdqn.tasks.oscillator.constants import CONTROL_PERIOD, EDGE_POPULATION, EDGE_STATES, FORCE_UNIT, MASS, STEP_ERROR
from cdqn.tasks.oscillator.propagation import Propagator, control_step, make_propagator


def require_room(basis: Basis, energy_limit: float) -> None:
    """The ground state, kicked to the energy limit, must fit into the basis."""
    if lost(basis, energy_limit) <= EDGE_POPULATION:
        return
    enough = basis.size
    while lost(make_basis(enough), energy_limit) > EDGE_POPULATION:
        enough += 4
    raise ConfigError(
        f"basis_size {basis.size} is too small for energy_limit {energy_limit:g}: raise basis_size to {enough}, or "
        "lower energy_limit"
    )


def lost(basis: Basis, energy: float) -> float:
    """How much of the ground state, kicked to an energy, is among the highest states or beyond them."""
    momentum = np.sqrt(2 * MASS * max(energy - basis.energy_N[0], 0.0))
    x_G, step = np.linspace(-12, 12, 2401, retstep=True)
    functions_NG = basis.functions(x_G)
    inside_N = (functions_NG[:-EDGE_STATES] * (functions_NG[0] * np.exp(1j * momentum * x_G))).sum(1) * step
    return float(1 - (np.abs(inside_N) ** 2).sum())


def require_fine_steps(propagator: Propagator, force: float) -> None:
    """A control step of the strongest force, from the ground state, must be as exact diagonalisation has it."""
    if step_error(propagator, force) <= STEP_ERROR:
        return
    enough = propagator.substeps
    while step_error(make_propagator(propagator.basis, enough, (force,)), force) > STEP_ERROR:
        enough += 1
    raise ConfigError(
        f"substeps {propagator.substeps} is too coarse for max_force {force:g}: raise substeps to {enough}, or lower "
        "max_force"
    )


def step_error(propagator: Propagator, force: float) -> float:
    """1 − |overlap|² of the ground state after a control step of `force` without measurement, and the exact one."""
    basis = propagator.basis
    split = make_propagator(basis, propagator.substeps, (force,), measurement=0.0)
    ground_1N = np.eye(1, basis.size, dtype=np.complex128)
    stepped_N = control_step(split, ground_1N, np.zeros(1, np.int64), np.zeros((1, split.substeps))).amplitudes_BN[0]
    x_NN = (basis.to_point_NN * basis.point_N) @ basis.to_point_NN.T
    energy_N, states_NN = np.linalg.eigh(np.diag(basis.energy_N) - FORCE_UNIT * force * x_NN)
    exact_N = states_NN @ (np.exp(-1j * energy_N * CONTROL_PERIOD) * states_NN[0])
    return float(1 - np.abs(np.vdot(exact_N, stepped_N)) ** 2)
