"""Environments that lie, raise, die of old age or change their shape: each is named, and nothing of it is stored."""

import gymnasium as gym
import numpy as np
from fuzzing import examples
from gymnasium.spaces import Box, Discrete
from hypothesis import given
from hypothesis import strategies as st

import cdqn
from cdqn.errors import CdqnError

SMALL = {"hidden": (8,), "warmup_steps": 20, "batch_size": 8, "log_period_steps": 20, "compile": "off", "num_envs": 1}


class OwnError(Exception):
    """Of the environment's."""


class Adversary(gym.Env):
    """Well-behaved, but for one call."""

    observation_space = Box(-1, 1, (3,), np.float32)
    action_space = Discrete(2)

    def __init__(self, kind, at, in_reset):
        self.kind, self.at, self.in_reset = kind, at, in_reset
        self.calls = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._lie((self._observe(), {})) if self.in_reset and self._now() else (self._observe(), {})

    def step(self, action):
        self.time += 1
        result = (self._observe(), 1.0, self.time >= 7, False, {})
        return self._lie(result) if not self.in_reset and self._now() else result

    def _now(self):
        self.calls += 1
        return self.calls == self.at

    def _observe(self):
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)

    def _lie(self, result):
        observation, *rest = result
        if self.kind == "raise":
            raise OwnError("as it likes")
        if self.kind == "interrupt":
            raise SystemExit("leaves")
        if self.kind == "old tuple":
            return observation if self.in_reset else (observation, 1.0, False, {})
        if self.kind == "nothing":
            return None
        if self.kind == "one more":
            return (*result, {})
        if self.kind in OBSERVATIONS:
            observation = OBSERVATIONS[self.kind]
        elif len(rest) > 1:
            rest[0] = REWARDS[self.kind]
        return (observation, *rest)


REWARDS = {
    "nan reward": np.nan,
    "infinite reward": np.inf,
    "text reward": "much",
    "list reward": [1.0, 2.0],
    "no reward": None,
    "huge reward": 1e300,
    "complex reward": 1j,
    "object reward": object(),
}
OBSERVATIONS = {
    "nan": np.full(3, np.nan, np.float32),
    "one infinite": np.array([0, -np.inf, 0], np.float32),
    "huge": np.full(3, 1e300),
    "shape": np.zeros(4, np.float32),
    "more dimensions": np.zeros((3, 1), np.float32),
    "empty": np.zeros(0, np.float32),
    "text": np.array(["a", "b", "c"]),
    "none": None,
    "object": object(),
    "dict": {"place": np.zeros(3, np.float32)},
}
KINDS = ("raise", "interrupt", "old tuple", "nothing", "one more", *OBSERVATIONS, *REWARDS)


@examples(40, in_round=60)
@given(st.sampled_from(KINDS), st.integers(1, 60), st.booleans())
def test_misbehaviour_is_an_error_and_nothing_of_it_is_stored(kind, at, in_reset):
    in_reset = in_reset and kind not in REWARDS and at <= 8  # there are no more resets than that
    agent, said = None, None
    try:
        agent = cdqn.CDQN(Adversary(kind, at, in_reset), **SMALL)
        agent.learn(100)
    except CdqnError as error:
        said = str(error)
    except (OwnError, SystemExit) as error:
        said = " ".join([str(error), *error.__notes__])
        assert kind in ("raise", "interrupt"), "only its own errors come through as they are"
    assert said is not None, f"{kind} at call {at} went unnoticed"
    assert "\n" not in said.strip()
    assert "Adversary" in said, f"{kind}: which environment it is stands nowhere in {said!r}"
    assert "step" in said, f"{kind}: when it was stands nowhere in {said!r}"
    assert "fix" in said or "not by cdqn" in said, f"{kind}: what to do stands nowhere in {said!r}"
    if agent is not None and len(agent.trainer.replay):
        batch = agent.trainer.replay.sample(64, 1.0)
        for values in (batch.observation, batch.next_observation, batch.reward):
            assert np.isfinite(values).all()
