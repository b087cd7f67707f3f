"""A quartic oscillator under continuous position measurement and a controlled force (App. B.1), as functions of arrays.

    H = p²/2m + λx⁴ − F·x,   dψ = [−iH − (γ/4)(x−⟨x⟩)²]ψ dt + √(γ/2)(x−⟨x⟩)ψ dW

(Wang, Ashida, Ueda, PRL 125, 100401; ħ = 1.)

A state is a row of amplitudes of the lowest energy states of H₀, H without force; a batch of trajectories is a matrix,
and all of them advance by one matrix product. Measurement and force are diagonal in the basis in which the truncated
operator x is (the discrete-variable representation); between the two bases lies a real rotation.

Suffixes: B trajectories, N energy states or points, S substeps, A actions, K powers of ∂/∂x.
"""

from cdqn.tasks.oscillator.basis import Basis, gaussian_packets, ground_state_energy, make_basis
from cdqn.tasks.oscillator.constants import (
    CONTROL_PERIOD,
    EDGE_POPULATION,
    EDGE_STATES,
    FORCE_UNIT,
    MASS,
    MEASUREMENT,
    MOMENT_ORDER,
    NUM_ACTIONS,
    NUM_MOMENTS,
    QUARTIC,
    STEP_ERROR,
    Amplitudes,
    Reals,
)
from cdqn.tasks.oscillator.limits import lost, require_fine_steps, require_room, step_error
from cdqn.tasks.oscillator.observables import edge_population, energies, moment_bounds, moments
from cdqn.tasks.oscillator.propagation import (
    Advanced,
    Propagator,
    control_step,
    free_evolution,
    make_propagator,
    normalized,
)

__all__ = [
    "CONTROL_PERIOD",
    "EDGE_POPULATION",
    "EDGE_STATES",
    "FORCE_UNIT",
    "MASS",
    "MEASUREMENT",
    "MOMENT_ORDER",
    "NUM_ACTIONS",
    "NUM_MOMENTS",
    "QUARTIC",
    "STEP_ERROR",
    "Advanced",
    "Amplitudes",
    "Basis",
    "Propagator",
    "Reals",
    "control_step",
    "edge_population",
    "energies",
    "free_evolution",
    "gaussian_packets",
    "ground_state_energy",
    "lost",
    "make_basis",
    "make_propagator",
    "moment_bounds",
    "moments",
    "normalized",
    "require_fine_steps",
    "require_room",
    "step_error",
]
