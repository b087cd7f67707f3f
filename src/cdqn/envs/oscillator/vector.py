"""Trajectories of the quartic oscillator side by side: the vector environment.

The native environment is the vector one: all trajectories advance by the same matrix products. An episode is its seed
and its actions, whatever the other trajectories do and however many they are: each has noise of its own, a function of
its seed and of time, and rows are filled up to whole blocks, in which a matrix product rounds every row alike.
"""

from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cdqn.envs.oscillator.episodes import NOISE, draw_starts, generator, ground_states, whole_blocks
from cdqn.envs.oscillator.settings import ENERGY_LIMIT, MAX_FORCE, TIME_LIMIT, check_settings
from cdqn.errors import ConfigError, UnsupportedEnvironmentError
from cdqn.tasks import oscillator as physics

PICTURES = {"render_modes": ["rgb_array"], "render_fps": round(1 / physics.CONTROL_PERIOD)}
_NOISE_STEPS = 64
"""Control steps for which the noise is drawn at once."""

Observation = NDArray[np.float32]
Infos = dict[str, Any]
Bools = NDArray[np.bool_]


class QuarticOscillatorVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """Trajectories side by side; autoreset is disabled, every episode begins with a seed of its own.

    Actions are the forces π·f with f = −5, −4.5, …, 5. The reward is −energy × `reward_scale`, with the energy of H₀
    after the step. An episode never terminates: it is truncated at `time_limit`, at `energy_limit`, or where the state
    has outgrown the basis, which `infos["edge"]` says and `edge_count` counts.

    Observations: "moments", 20 numbers (`physics.moments`) × `observation_scale`; or "wavefunction", the real parts of
    the amplitudes at the `basis_size` points `basis.point_N`, then their imaginary parts.

    infos: "energy"; "signal", what the detector showed on average during the step; "edge".
    """

    def __init__(
        self,
        num_envs: int,
        *,
        observation: Literal["moments", "wavefunction"] = "moments",
        energy_limit: float = ENERGY_LIMIT,
        time_limit: float = TIME_LIMIT,
        max_force: float = MAX_FORCE,
        reward_scale: float = 0.01,
        observation_scale: float = 0.1,
        basis_size: int = 40,
        substeps: int = 4,
        render_mode: str | None = None,
    ) -> None:
        check_settings(
            num_envs=num_envs,
            observation=observation,
            energy_limit=energy_limit,
            time_limit=time_limit,
            max_force=max_force,
            reward_scale=reward_scale,
            observation_scale=observation_scale,
            render_mode=render_mode,
        )
        self.num_envs = num_envs
        self.energy_limit = energy_limit
        self.time_limit_steps = round(time_limit / physics.CONTROL_PERIOD)
        self.reward_scale = reward_scale
        self.observation_scale = observation_scale
        self.render_mode = render_mode
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED, **PICTURES}
        self._sees_moments = observation == "moments"
        self._prepare_physics(basis_size, substeps, max_force)
        self._make_spaces()
        self._make_state()

    def _prepare_physics(self, basis_size: int, substeps: int, max_force: float) -> None:
        self.force_A = np.linspace(-max_force, max_force, physics.NUM_ACTIONS)
        self.basis = physics.make_basis(basis_size)
        self._propagator = physics.make_propagator(self.basis, substeps, self.force_A)
        physics.require_room(self.basis, self.energy_limit)
        physics.require_fine_steps(self._propagator, max_force)
        # Without force, one substep for a control period is as exact as four (see the tests).
        self._warm_up = physics.make_propagator(self.basis, 1)

    def _make_spaces(self) -> None:
        if self._sees_moments:
            bound = physics.moment_bounds(self.basis) * self.observation_scale
        else:
            bound = np.ones(2 * self.basis.size)
        # Half a unit in the last place: a value at the bound may be rounded upwards.
        highest = np.nextafter(bound.astype(np.float32), np.float32(np.inf))
        self.single_observation_space = Box(-highest, highest, dtype=np.float32)
        self.single_action_space = Discrete(physics.NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def _make_state(self) -> None:
        """All that changes: as if every episode had ended."""
        self.edge_count = 0
        """Episodes that ended because the state had outgrown the basis."""
        rows = whole_blocks(self.num_envs)
        self._amplitudes_BN = ground_states(rows, self.basis.size)
        self._noise_BTS = np.zeros((rows, _NOISE_STEPS, self._propagator.substeps))
        self._action_B = np.full(rows, physics.NUM_ACTIONS // 2)
        self._seed_B = np.zeros(self.num_envs, np.uint64)
        self._step_B = np.zeros(self.num_envs, np.int64)
        self._ended_B = np.ones(self.num_envs, bool)
        self._rows_B = np.arange(self.num_envs)
        self._picture: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Observation, Infos]:
        """Begin episodes, all or where options["reset_mask"] is true; one seed for each environment, or one for all."""
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seed = [int(seed) + env for env in range(self.num_envs)]
        mask = np.ones(self.num_envs, bool) if not options else np.asarray(options["reset_mask"], bool)
        envs = np.flatnonzero(mask)
        for env in envs:
            given = None if seed is None else seed[env]
            self._seed_B[env] = self.np_random.integers(2**63) if given is None else given
        self._amplitudes_BN[envs] = draw_starts(self.basis, self._warm_up, self._seed_B[envs])
        self._action_B[envs] = physics.NUM_ACTIONS // 2
        self._step_B[envs] = 0
        self._ended_B[envs] = False
        energy_B = physics.energies(self.basis, self._amplitudes_BN)[: self.num_envs]
        return self._observe(), {"energy": energy_B, "edge": np.zeros(self.num_envs, bool)}

    def step(self, actions: ArrayLike) -> tuple[Observation, NDArray[Any], Bools, Bools, Infos]:
        """One control step of every trajectory."""
        if self._ended_B.any():
            raise UnsupportedEnvironmentError(
                f"environment {int(self._ended_B.argmax())} has ended: reset it before the next step"
            )
        self._action_B[: self.num_envs] = self._checked(actions)
        place_B = self._step_B % _NOISE_STEPS
        self._draw_noise(np.flatnonzero(place_B == 0))
        noise_BS = np.zeros((len(self._noise_BTS), self._propagator.substeps))
        noise_BS[: self.num_envs] = self._noise_BTS[self._rows_B, place_B]
        self._amplitudes_BN, signal_B = physics.control_step(
            self._propagator, self._amplitudes_BN, self._action_B, noise_BS
        )
        self._step_B += 1
        energy_B = physics.energies(self.basis, self._amplitudes_BN)[: self.num_envs]
        edge_B = physics.edge_population(self._amplitudes_BN[: self.num_envs]) > physics.EDGE_POPULATION
        self.edge_count += int(edge_B.sum())
        truncated_B = edge_B | (energy_B >= self.energy_limit) | (self._step_B >= self.time_limit_steps)
        self._ended_B = truncated_B.copy()
        infos = {"energy": energy_B, "signal": signal_B[: self.num_envs], "edge": edge_B}
        never_B = np.zeros(self.num_envs, bool)
        return self._observe(), -energy_B * self.reward_scale, never_B, truncated_B, infos

    def render(self) -> tuple[Any, ...] | None:
        """The probability density over the potential, one RGB picture for each trajectory."""
        if self.render_mode is None:
            return None
        from cdqn.envs.oscillator.picture import OscillatorPicture

        self._picture = self._picture or OscillatorPicture(self.basis)
        energy_B = physics.energies(self.basis, self._amplitudes_BN)
        return tuple(
            self._picture.draw(
                self._amplitudes_BN[env],
                energy=float(energy_B[env]),
                force=float(self.force_A[self._action_B[env]]),
                time=float(self._step_B[env] * physics.CONTROL_PERIOD),
            )
            for env in range(self.num_envs)
        )

    def state_dict(self) -> dict[str, Any]:
        """All that changes, as arrays of real numbers; the noise is a function of seed and step."""
        return {
            "amplitudes": self._amplitudes_BN.view(np.float64).copy(),
            "action": self._action_B.copy(),
            "seed": self._seed_B.copy(),
            "step": self._step_B.copy(),
            "ended": self._ended_B.copy(),
            "edge_count": self.edge_count,
            "rng": self.np_random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        rows, parts = state["amplitudes"].shape
        if (rows, parts) != (len(self._amplitudes_BN), 2 * self.basis.size) or len(state["seed"]) != self.num_envs:
            raise ConfigError(
                f"the saved state is of {len(state['seed'])} environments and basis_size {parts // 2}, this one has "
                f"{self.num_envs} and {self.basis.size}: make it with the saved numbers"
            )
        self._amplitudes_BN = np.array(state["amplitudes"], np.float64).view(np.complex128)
        self._action_B = np.array(state["action"], np.int64)
        self._seed_B = np.array(state["seed"], np.uint64)
        self._step_B = np.array(state["step"], np.int64)
        self._ended_B = np.array(state["ended"], bool)
        self.edge_count = int(state["edge_count"])
        self.np_random.bit_generator.state = state["rng"]
        self._draw_noise(self._rows_B)

    def _draw_noise(self, envs: NDArray[np.int64]) -> None:
        """The block of noise to which the present step of each of `envs` belongs."""
        for env in envs:
            rng = generator(int(self._seed_B[env]), NOISE, int(self._step_B[env]) // _NOISE_STEPS)
            rng.standard_normal(out=self._noise_BTS[env])

    def _observe(self) -> Observation:
        if self._sees_moments:
            values = physics.moments(self.basis, self._amplitudes_BN) * self.observation_scale
        else:
            parts = np.stack([self._amplitudes_BN.real, self._amplitudes_BN.imag])
            values = np.concatenate(list(parts @ self.basis.to_point_NN), axis=1)
        return values[: self.num_envs].astype(np.float32)

    def _checked(self, actions: ArrayLike) -> NDArray[np.int64]:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise UnsupportedEnvironmentError(
                f"actions of type {actions.dtype} and shape {actions.shape}: {self.num_envs} environments take as many "
                "integers"
            )
        if (wrong := (actions < 0) | (actions >= physics.NUM_ACTIONS)).any():
            env = int(wrong.argmax())
            raise UnsupportedEnvironmentError(
                f"action {actions[env]} of environment {env} is outside 0…{physics.NUM_ACTIONS - 1}: the force is "
                f"π·(action − {physics.NUM_ACTIONS // 2})·{self.force_A[1] - self.force_A[0]:g}"
            )
        return actions.astype(np.int64)
