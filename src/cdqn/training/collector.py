"""The collector: a vector environment in, transitions out, whatever its autoreset mode.

Three facts are kept apart here. A *terminated* episode has no future value; a *truncated* one does, and its
last transition keeps the true final observation; and the step in which an environment merely resets
itself (autoreset NEXT_STEP) is no transition at all.

In Atari games a lost life ends an episode for the learner while the game goes on: the environment says so in
`infos["life_lost"]`, and what it played in `infos["action"]`. Episodes are whole games, in raw scores. Only an
environment whose class promises it (`tells_lives`) is heard: in others the same words may mean anything, say an
opponent's move.

With autoreset disabled, the mode of all environments made by `make_vec`, every episode is begun by a seed of
our own: an open episode is then its seed and its actions, and `load_state_dict` plays it again.
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from cdqn.envs import EnvSpec
from cdqn.errors import CheckpointError, NonFiniteError
from cdqn.replay import Transitions
from cdqn.training.environment_call import EnvironmentCall, name_of
from cdqn.training.events import Episode
from cdqn.training.seeding import derived_seed

_NOWHERE = np.False_

Resumption = Literal["replayed", "state", "episode border"]


class Collected(NamedTuple):
    """The harvest of one step of the vector environment."""

    transitions: Transitions
    episodes: list[Episode]
    ended: NDArray[np.bool_]
    """For each transition: the episode, an Atari game with all its lives, ended with it."""


class Collector:
    """Steps a vector environment, and keeps track of its episodes."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        spec: EnvSpec,
        seed: int,
        reward_clip: bool = False,
        timeout_seconds: float | None = None,
    ) -> None:
        self.env = env
        self._call = EnvironmentCall(env, timeout_seconds)
        self.spec = spec
        self.seed = seed
        self.reward_clip = reward_clip
        self.steps = 0
        self.mode: AutoresetMode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        count = env.num_envs
        self._tells_lives = bool(getattr(env, "tells_lives", False))
        self._is_float = np.issubdtype(spec.observation_dtype, np.floating)
        self._episode_index = np.zeros(count, dtype=np.int64)
        self._actions: list[list[int]] = [[] for _ in range(count)]
        self._total_reward = np.zeros(count)
        self._length = np.zeros(count, dtype=np.int64)
        self._first = np.ones(count, dtype=bool)
        self._resetting = np.zeros(count, dtype=bool)
        self._any_resetting = False
        self._streams = np.arange(count)
        self.observation: NDArray[Any] = self._begin()

    @property
    def resumption(self) -> Resumption:
        """How open episodes survive a checkpoint: played again, as captured state, or not at all."""
        if _has_state(self.env):
            return "state"
        return "replayed" if self.mode == AutoresetMode.DISABLED else "episode border"

    @property
    def longest_open_episode(self) -> int:
        """Steps of the longest episode that has not ended."""
        return int(self._length.max())

    def step(self, actions: NDArray[np.int64]) -> Collected:
        """Act in all environments at once."""
        with self._call(f"step {self.steps + 1} of the run"):
            observation, reward, terminated, truncated, infos = self.env.step(actions + self.spec.first_action)
        observation = self._checked_observation(observation)
        reward = self._checked_reward(reward)
        done = terminated | truncated
        any_done = bool(done.any())
        ended = done.copy()
        same_step = any_done and self.mode == AutoresetMode.SAME_STEP
        final = self._final_observation(observation, done, infos) if same_step else observation
        played, life_lost = (infos["action"], infos["life_lost"]) if self._tells_lives else (actions, _NOWHERE)
        transitions = Transitions(
            observation=self.observation,
            action=played,
            reward=np.clip(reward, -1, 1) if self.reward_clip else reward,
            next_observation=final,
            terminated=terminated | life_lost,
            stream=self._streams,
            first=self._first.copy(),
        )
        if self._any_resetting:  # in a NEXT_STEP environment the step after an end only resets
            real = ~self._resetting
            transitions = Transitions(*(field[real] for field in transitions))
            ended = done[real]
            done &= real
            any_done = bool(done.any())
            self._total_reward[real] += reward[real]
            self._length[real] += 1
        else:
            self._total_reward += reward
            self._length += 1
        self.steps += len(transitions.action)
        self._first[:] = self._resetting | life_lost
        if self.mode == AutoresetMode.DISABLED:
            for open_actions, action in zip(self._actions, played.tolist(), strict=True):
                open_actions.append(action)
        episodes = self._close(done, terminated) if any_done else []
        if self.mode == AutoresetMode.NEXT_STEP:
            self._resetting, self._any_resetting = done, any_done
        self.observation = self._reset_where(done, observation) if any_done else observation
        return Collected(transitions, episodes, ended)

    def _final_observation(
        self, observation: NDArray[Any], done: NDArray[np.bool_], infos: dict[str, Any]
    ) -> NDArray[Any]:
        """Where a SAME_STEP environment has begun anew: the observation before, which it tells aside."""
        final = observation.copy()
        for env in np.flatnonzero(done):
            final[env] = infos["final_obs"][env]
        return self._checked_observation(final)

    def state_dict(self) -> dict[str, Any]:
        """The bookkeeping, and the open episodes in whatever form this environment allows."""
        state: dict[str, Any] = {
            "steps": self.steps,
            "episode_index": self._episode_index.copy(),
            "total_reward": self._total_reward.copy(),
            "length": self._length.copy(),
            "first": self._first.copy(),
            "observation": self.observation.copy(),
            "resumption": self.resumption,
        }
        if self.resumption == "state":
            state["env"] = self.env.unwrapped.state_dict()
            state["resetting"] = self._resetting.copy()
        elif self.resumption == "replayed":
            state["actions"] = np.array([a for open_episode in self._actions for a in open_episode], dtype=np.int64)
            state["action_counts"] = np.array([len(a) for a in self._actions], dtype=np.int64)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> str | None:
        """Take over the bookkeeping and bring the environment back; if it cannot be brought back, say why."""
        self.require_as_many(state)
        self.steps = int(state["steps"])
        self._episode_index[:] = state["episode_index"]
        if state["resumption"] != self.resumption:
            return self._restart("the environment is of another kind than the saved one")
        if self.resumption == "episode border":
            return self._restart("this vector environment resets itself: its open episodes cannot be played again")
        if self.resumption == "state":
            self.env.unwrapped.load_state_dict(state["env"])
            self._resetting = np.array(state["resetting"])
            self._any_resetting = bool(self._resetting.any())
            self.observation = np.array(state["observation"])
        else:
            replayed = self._replay(state["actions"], state["action_counts"])
            if replayed is None or not np.array_equal(replayed, state["observation"], equal_nan=True):
                return self._restart("the environment does not repeat an episode from its seed and actions")
            self.observation = replayed
        self._total_reward[:] = state["total_reward"]
        self._length[:] = state["length"]
        self._first[:] = state["first"]
        return None

    def require_as_many(self, state: dict[str, Any]) -> None:
        """Refuse a state of another number of environments."""
        saved, given = len(state["episode_index"]), self.env.num_envs
        if saved != given:
            raise CheckpointError(
                f"the checkpoint is of {saved} environments, and there are {given}: give as many as before"
            )

    def _begin(self) -> NDArray[Any]:
        """The first observations of fresh episodes in all environments."""
        if self.mode == AutoresetMode.DISABLED:
            observation, _ = self._reset()
        else:
            with self._call("reset"):
                observation, _ = self.env.reset(seed=self._episode_seed(0))
        return self._checked_observation(observation)

    def _restart(self, reason: str) -> str:
        """Give up the open episodes; nothing of them is stored twice, nothing is invented."""
        self._episode_index += 1
        self._actions = [[] for _ in self._actions]
        self._total_reward[:] = 0
        self._length[:] = 0
        self._first[:] = True
        self._resetting[:] = False
        self._any_resetting = False
        self.observation = self._begin()
        return f"{reason}; the run continues with new episodes, and is not bit for bit the uninterrupted one"

    def _replay(self, actions: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[Any] | None:
        """Play the open episodes again, each from its own seed; None if one ends, which was open."""
        rows = np.split(actions, np.cumsum(counts)[:-1])
        self._actions = [row.tolist() for row in rows]
        observation = self._begin()
        # All must end together, so the shorter ones wait for their turn, playing whatever comes.
        longest = int(counts.max(initial=0))
        for remaining in range(longest, 0, -1):
            if remaining < longest and (starting := counts == remaining).any():
                observation, _ = self._reset(starting)
            step_actions = np.array([row[-remaining] if len(row) >= remaining else 0 for row in rows])
            with self._call(f"a repeated step of an episode open at step {self.steps}"):
                observation, _, terminated, truncated, _ = self.env.step(step_actions + self.spec.first_action)
            over = terminated | truncated
            if (over & (counts >= remaining)).any():
                return None
            if over.any():
                observation, _ = self._reset(over)
        if longest and (unplayed := counts == 0).any():
            observation, _ = self._reset(unplayed)
        return self._checked_observation(observation)

    def _close(self, done: NDArray[np.bool_], terminated: NDArray[np.bool_]) -> list[Episode]:
        """Report the finished episodes and begin their bookkeeping anew."""
        episodes = []
        for env in np.flatnonzero(done).tolist():
            ended: Literal["terminated", "truncated"] = "terminated" if terminated[env] else "truncated"
            total, length = float(self._total_reward[env]), int(self._length[env])
            episodes.append(Episode(self.steps, env, total, length, ended))
            self._total_reward[env] = 0
            self._length[env] = 0
            self._actions[env] = []
            self._episode_index[env] += 1
            self._first[env] = True
        return episodes

    def _reset_where(self, done: NDArray[np.bool_], observation: NDArray[Any]) -> NDArray[Any]:
        if self.mode != AutoresetMode.DISABLED:
            return observation
        fresh, _ = self._reset(done)
        return self._checked_observation(fresh)

    def _reset(self, mask: NDArray[np.bool_] | None = None) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin episodes where `mask` is true, each with its own seed."""
        seeds: Any = [self._episode_seed(env) for env in range(self.env.num_envs)]
        with self._call(f"the reset after step {self.steps} of the run"):
            return self.env.reset(seed=seeds, options=None if mask is None else {"reset_mask": mask})

    def _episode_seed(self, env: int) -> int:
        """Seed of an environment's present episode: a function of the run's seed, never of the past."""
        key = (env, int(self._episode_index[env]))
        return derived_seed(self.seed, key)

    def _checked_observation(self, observation: NDArray[Any]) -> NDArray[Any]:
        # A copy, because a vector environment may hand out one buffer again and again.
        observation = np.array(observation, dtype=self.spec.observation_dtype)
        # A finite sum has finite terms: one pass over the numbers, and the exact check only where it is not.
        if self._is_float and not math.isfinite(observation.sum()) and not np.isfinite(observation).all():
            env = int(np.flatnonzero(~np.isfinite(observation).reshape(len(observation), -1).all(1))[0])
            raise NonFiniteError(self._blame("observation", env, observation[env]))
        return observation

    @np.errstate(over="ignore")  # 1e300 becomes infinite, and is found below
    def _checked_reward(self, given: NDArray[Any]) -> NDArray[np.float32]:
        reward = np.asarray(given, dtype=np.float32)
        if not math.isfinite(reward.sum()) and not np.isfinite(reward).all():
            env = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise NonFiniteError(self._blame("reward", env, given[env]))
        return reward

    def _blame(self, what: str, env: int, value: Any) -> str:
        return (
            f"environment {env} ({name_of(self.env)}) returned the {what} {value} at step {self.steps + 1}: "
            "it must be finite, in 32 bits; fix the environment, then resume from the last checkpoint"
        )


def _has_state(env: VectorEnv[Any, Any, Any]) -> bool:
    return hasattr(env.unwrapped, "state_dict") and hasattr(env.unwrapped, "load_state_dict")
