"""Cooling a quartic oscillator by measurement and feedback (App. B.1): `cdqn/QuarticOscillator-v0`.

The native environment is the vector one: all trajectories advance by the same matrix products. An episode is its seed
and its actions, whatever the other trajectories do and however many they are: each has noise of its own, a function of
its seed and of time, and rows are filled up to whole blocks, in which a matrix product rounds every row alike.
"""

from collections.abc import Callable
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from cdqn.errors import ConfigError, UnsupportedEnvironmentError
from cdqn.tasks import oscillator as physics

ENERGY_LIMIT = 12.0
"""Of training; the paper tests with 100."""
TEST_ENERGY_LIMIT = 100.0
START_ENERGY_LIMIT = 7.5
START_WAVE_NUMBER = 0.3
"""Largest, in waves per unit of length: the momentum is 2π times it."""
START_TIME = (15.0, 20.0)
"""Shortest and longest time of measurement without control before an episode."""
TIME_LIMIT = 100.0
MAX_FORCE = 5.0

_ROWS = 8
"""Rows are filled up to a multiple of this."""
_NOISE_STEPS = 64
"""Control steps for which the noise is drawn at once."""
_START, _NOISE = range(2)

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
        _require(num_envs >= 1, "num_envs", num_envs, "at least 1")
        _require(observation in ("moments", "wavefunction"), "observation", observation, "'moments' or 'wavefunction'")
        limit = f"above {START_ENERGY_LIMIT}, at which episodes may begin"
        _require(START_ENERGY_LIMIT < energy_limit < np.inf, "energy_limit", energy_limit, limit)
        _require(
            physics.CONTROL_PERIOD <= time_limit < np.inf, "time_limit", time_limit, "1/18, a control step, or more"
        )
        _require(0 < max_force < np.inf, "max_force", max_force, "positive; it is in units of π")
        _require(0 < reward_scale < np.inf, "reward_scale", reward_scale, "positive")
        _require(0 < observation_scale < np.inf, "observation_scale", observation_scale, "positive")
        pictures = "'rgb_array': it opens no window; use --video FILE.gif"
        _require(render_mode in (None, "rgb_array"), "render_mode", render_mode, pictures)
        self.force_A = np.linspace(-max_force, max_force, physics.NUM_ACTIONS)
        self.basis = physics.make_basis(basis_size)
        self._propagator = physics.make_propagator(self.basis, substeps, self.force_A)
        physics.require_room(self.basis, energy_limit)
        physics.require_fine_steps(self._propagator, max_force)
        # Without force, one substep for a control period is as exact as four (see the tests).
        self._warm_up = physics.make_propagator(self.basis, 1)
        self.num_envs = num_envs
        self.energy_limit = energy_limit
        self.time_limit_steps = round(time_limit / physics.CONTROL_PERIOD)
        self.reward_scale = reward_scale
        self.observation_scale = observation_scale
        self.render_mode = render_mode
        self.metadata = {
            "autoreset_mode": AutoresetMode.DISABLED,
            "render_modes": ["rgb_array"],
            "render_fps": round(1 / physics.CONTROL_PERIOD),
        }
        self._sees_moments = observation == "moments"
        bound = physics.moment_bounds(self.basis) * observation_scale if self._sees_moments else np.ones(2 * basis_size)
        # Half a unit in the last place: a value at the bound may be rounded upwards.
        highest = np.nextafter(bound.astype(np.float32), np.float32(np.inf))
        self.single_observation_space = Box(-highest, highest, dtype=np.float32)
        self.single_action_space = Discrete(physics.NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.edge_count = 0
        """Episodes that ended because the state had outgrown the basis."""
        rows = _whole_blocks(num_envs)
        self._amplitudes_BN = _ground_states(rows, basis_size)
        self._noise_BTS = np.zeros((rows, _NOISE_STEPS, substeps))
        self._action_B = np.full(rows, physics.NUM_ACTIONS // 2)
        self._seed_B = np.zeros(num_envs, np.uint64)
        self._step_B = np.zeros(num_envs, np.int64)
        self._ended_B = np.ones(num_envs, bool)
        self._rows_B = np.arange(num_envs)
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
        self._amplitudes_BN[envs] = self._starts(self._seed_B[envs])
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
        from cdqn.envs.oscillator_picture import OscillatorPicture

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

    def _starts(self, seeds: NDArray[np.uint64]) -> physics.Amplitudes:
        """First states of episodes: packets, measured without control, drawn again where the energy is too high."""
        amplitudes_BN = _ground_states(len(seeds), self.basis.size)
        open_B = np.arange(len(seeds))
        attempt = 0
        while len(open_B):
            rows = _whole_blocks(len(open_B))
            wave_number_B, count_B = np.zeros(rows), np.ones(rows, np.int64)
            noise_BT = np.zeros((rows, _control_steps(START_TIME[1])))
            for row, seed in enumerate(seeds[open_B]):
                rng = _generator(int(seed), _START, attempt)
                wave_number_B[row] = rng.uniform(-START_WAVE_NUMBER, START_WAVE_NUMBER)
                count_B[row] = _control_steps(rng.uniform(*START_TIME))
                noise_BT[row, : count_B[row]] = rng.standard_normal(count_B[row])
            packets_BN = physics.gaussian_packets(self.basis, 2 * np.pi * wave_number_B)
            started_BN = physics.free_evolution(self._warm_up, packets_BN, count_B, noise_BT)
            good_B = physics.energies(self.basis, started_BN) < START_ENERGY_LIMIT
            good_B &= physics.edge_population(started_BN) < physics.EDGE_POPULATION
            good_B = good_B[: len(open_B)]
            amplitudes_BN[open_B[good_B]] = started_BN[: len(open_B)][good_B]
            open_B = open_B[~good_B]
            attempt += 1
        return amplitudes_BN

    def _draw_noise(self, envs: NDArray[np.int64]) -> None:
        """The block of noise to which the present step of each of `envs` belongs."""
        for env in envs:
            rng = _generator(int(self._seed_B[env]), _NOISE, int(self._step_B[env]) // _NOISE_STEPS)
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


class QuarticOscillatorEnv(gym.Env[Observation, np.int64]):
    """One trajectory of `QuarticOscillatorVectorEnv`, with the same settings, and bit for bit the same numbers."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / physics.CONTROL_PERIOD)}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, **settings: Any) -> None:
        self._vector = QuarticOscillatorVectorEnv(1, render_mode=render_mode, **settings)
        self.render_mode = render_mode
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Infos]:
        """Begin an episode; without a seed it is drawn from `np_random`."""
        super().reset(seed=seed)
        episode_seed = int(self.np_random.integers(2**63)) if seed is None else seed
        observation, infos = self._vector.reset(seed=[episode_seed])
        return observation[0], _first(infos)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Infos]:
        """One control step."""
        observation, reward, _, truncated, infos = self._vector.step(np.asarray(action)[None])
        return observation[0], float(reward[0]), False, bool(truncated[0]), _first(infos)

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """The probability density over the potential."""
        pictures = self._vector.render()
        return None if pictures is None else pictures[0]

    def state_dict(self) -> dict[str, Any]:
        """All that changes, the generator of seeds included."""
        return self._vector.state_dict() | {"seeds_rng": self.np_random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self._vector.load_state_dict(state)
        self.np_random.bit_generator.state = state["seeds_rng"]


def late_energies(
    env: QuarticOscillatorVectorEnv, act: Callable[[Observation], NDArray[np.int64]], episodes: int, seed: int
) -> NDArray[np.float64]:
    """Mean energy over the second half of each episode, App. B.1; of an episode that ended early, the energy limit."""
    means = []
    for first in range(0, episodes, env.num_envs):
        # Episode i has the same seed however many trajectories there are.
        seeds = [_episode_seed(seed, first + env_number) for env_number in range(env.num_envs)]
        observation, infos = env.reset(seed=seeds)
        energies = [infos["energy"]]
        failed_B = np.zeros(env.num_envs, bool)
        for _ in range(1, env.time_limit_steps):
            observation, _, _, truncated_B, infos = env.step(act(observation))
            energies.append(infos["energy"])
            if truncated_B.any():
                failed_B |= truncated_B
                if failed_B.all():
                    break
                observation, _ = env.reset(seed=seeds, options={"reset_mask": truncated_B})
        mean_B = np.full(env.num_envs, env.energy_limit)
        if not failed_B.all():
            mean_B[~failed_B] = np.mean(energies[env.time_limit_steps // 2 :], axis=0)[~failed_B]
        means.append(mean_B)
    return np.concatenate(means)[:episodes]


def _episode_seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(episode,)).generate_state(1)[0])


def _generator(seed: int, purpose: int, number: int) -> np.random.Generator:
    """Of an episode's start, or of a block of its noise: the same whenever it is asked for."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, number)))


def _control_steps(time: float) -> int:
    """Whole control steps of a time, rounded up."""
    return int(np.ceil(time / physics.CONTROL_PERIOD))


def _whole_blocks(rows: int) -> int:
    return -(-rows // _ROWS) * _ROWS


def _ground_states(rows: int, size: int) -> physics.Amplitudes:
    return np.eye(1, size, dtype=np.complex128).repeat(rows, axis=0)


def _first(infos: Infos) -> Infos:
    return {name: value[0].item() for name, value in infos.items()}


def _require(condition: bool, name: str, value: Any, wanted: str) -> None:
    if not condition:
        raise ConfigError(f"{name} is {value!r}: the quartic oscillator wants it {wanted}")
