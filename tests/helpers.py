"""Tiny environments and batches shared by the tests."""

import copy
import resource
from contextlib import contextmanager
from functools import partial

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import TransformReward

import cdqn
from cdqn.algorithms import Network, TensorBatch
from cdqn.config import Config
from cdqn.envs import describe
from cdqn.nn.networks import MLP
from cdqn.replay import Batch, Transitions
from cdqn.training.events import Progress
from cdqn.training.learner import Learner
from cdqn.training.trainer import Trainer


class CountingEnv(gym.Env):
    """The observation says where it is from: (environment, episode, time). Rewards are the time.

    `lengths` are those of the episodes, in turn; an odd one ends in truncation, an even one in termination.
    """

    def __init__(self, name=0, lengths=(3, 4), first_action=0, actions=3):
        self.observation_space = Box(-1.0, 1e6, (3,), np.float32)
        self.action_space = Discrete(actions, start=first_action)
        self.name, self.lengths = name, lengths
        self.episode, self.time = -1, 0
        self.seeds, self.actions = [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.episode += 1
        self.time = 0
        return self._observation(), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action} is not among {self.action_space}"
        self.actions.append(int(action))
        self.time += 1
        length = self.lengths[self.episode % len(self.lengths)]
        done = self.time == length
        return self._observation(), float(self.time), done and length % 2 == 0, done and length % 2 == 1, {}

    def _observation(self):
        return np.array([self.name, self.episode, self.time], np.float32)


class WalkEnv(gym.Env):
    """A random walk that depends on its seed and on every action; it repeats from its seed.

    `lengths` is (shortest, longest) of the episodes, drawn at each reset; half of them end in termination.
    """

    def __init__(self, lengths=(5, 30)):
        self.observation_space = Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = Discrete(2)
        self.lengths = lengths

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(self.lengths[0], self.lengths[1] + 1))
        self.terminates = bool(self.np_random.integers(2))
        self.place, self.time = self.np_random.normal(size=2), 0
        return self._observation(), {}

    def step(self, action):
        self.time += 1
        self.place = 0.9 * self.place + self.np_random.normal(size=2) + np.array([action - 0.5, 0.5 - action])
        done = self.time >= self.length
        reward = float(self.place[0] > 0)
        return self._observation(), reward, done and self.terminates, done and not self.terminates, {}

    def _observation(self):
        return np.array([*self.place, self.time / 10], np.float32)


class ForgetfulEnv(WalkEnv):
    """Random numbers of its own, which no seed reaches: an episode never repeats."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.random.default_rng().normal(size=2)
        return self._observation(), {}


class ChoiceEnv(gym.Env):
    """One-hot observation of `count` kinds; reward 1 for the action of the same number, else 0."""

    def __init__(self, count=3, length=20):
        self.observation_space = Box(0, 1, (count,), np.float32)
        self.action_space = Discrete(count)
        self.count, self.length = count, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._next(), {}

    def step(self, action):
        reward = float(action == self.kind)
        self.time += 1
        return self._next(), reward, False, self.time == self.length, {}

    def _next(self):
        self.kind = int(self.np_random.integers(self.count))
        return np.eye(self.count, dtype=np.float32)[self.kind]


class SavedVectorEnv(VectorEnv):
    """A native vector environment that resets itself and can be captured: a noisy walk in each row."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  gymnasium's own convention

    def __init__(self, num_envs=2, length=7):
        self.num_envs, self.length = num_envs, length
        self.single_observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = Discrete(2)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gym.vector.utils.batch_space(self.single_action_space, num_envs)
        self.random = np.random.default_rng(0)
        self.place = np.zeros((num_envs, 2), np.float32)
        self.time = np.zeros(num_envs, np.int64)

    def reset(self, *, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.place[:] = self.random.normal(size=self.place.shape)
        self.time[:] = -np.arange(self.num_envs)  # rows end at different steps
        return self.place, {}

    def step(self, actions):
        over = self.time >= self.length
        self.place += self.random.normal(size=self.place.shape) + np.asarray(actions)[:, None]
        self.place[over] = self.random.normal(size=self.place.shape)[over]
        self.time = np.where(over, 0, self.time + 1)
        truncated = self.time >= self.length
        reward = np.where(over, 0.0, self.place[:, 0])
        return self.place, reward, np.zeros(self.num_envs, bool), truncated, {}

    def state_dict(self):
        return {"place": self.place.copy(), "time": self.time.copy(), "random": self.random.bit_generator.state}

    def load_state_dict(self, state):
        self.place[:], self.time = state["place"], np.array(state["time"])
        self.random.bit_generator.state = state["random"]


def random_batch(rng, size=32, observations=4, actions=2, dtype=np.float32, weighted=True, terminal_share=0.2):
    """Transitions without meaning, for learners."""
    return Batch(
        observation=rng.normal(size=(size, observations)).astype(dtype),
        action=rng.integers(actions, size=size),
        reward=rng.normal(size=size).astype(dtype),
        next_observation=rng.normal(size=(size, observations)).astype(dtype),
        terminated=rng.random(size) < terminal_share,
        weight=(rng.uniform(0.2, 3.0, size) if weighted else np.ones(size)).astype(dtype),
        slots=np.arange(size),
    )


def progress(**values):
    """A row of a run that is well."""
    settled = {
        "step": 100,
        "update": 20,
        "episodes": 3,
        "return_mean": 10.0,
        "loss": 0.5,
        "q_mean": 5.0,
        "q_bound": 100.0,
        "earned_low": -10.0,
        "earned_high": 60.0,
        "gradient_norm": 1.0,
        "epsilon": 0.1,
        "beta": 0.5,
        "steps_per_second": 1000.0,
        "statistics": {"dqn_share": 0.7},
    }
    return Progress(**(settled | values))


def paid(rewards, terminated, stream=None):
    """Transitions of which only rewards, ends and environments matter."""
    count = len(rewards)
    nothing = np.zeros(count)
    stream = np.arange(count) if stream is None else np.array(stream)
    return Transitions(nothing, nothing, np.array(rewards, np.float32), nothing, np.array(terminated), stream, nothing)


@contextmanager
def largest_file(size):
    """The system refuses to make any file longer than `size` bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # Python ignores the signal that goes with it
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def assert_same_state(one, other, path="state"):
    """Two nested states are equal bit for bit, types included."""
    assert type(one) is type(other), f"{path}: {type(one)} and {type(other)}"
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            assert_same_state(one[key], other[key], f"{path}.{key}")
    elif hasattr(one, "dtype"):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype, f"{path}: {one.dtype} and {other.dtype}"
        assert one.shape == other.shape, f"{path}: {one.shape} and {other.shape}"
        assert one.tobytes() == other.tobytes(), f"{path} differs"
    else:
        assert one == other, f"{path}: {one!r} and {other!r}"


def lines_of(axes, algorithm):
    """The lines of a picture that have the colour of an algorithm."""
    from matplotlib.colors import to_hex

    from cdqn.report.palette import ALGORITHMS

    return [line for line in axes.lines if to_hex(line.get_color()) == ALGORITHMS[algorithm].colour.lower()]


TINY = {
    "steps": 400,
    "hidden": (8,),
    "batch_size": 8,
    "warmup_steps": 40,
    "log_period_steps": 50,
    "update_period_steps": 4,
    "compile": "off",
}
"""Settings of a run that is over in a moment."""


def small_agent():
    """C-DQN on CartPole with a budget of 200 steps, of which 50 are warm-up."""
    settings = {"hidden": (8,), "warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "compile": "off"}
    return cdqn.CDQN("CartPole-v1", steps=200, **settings)


def earn(earned, rewards, gamma=0.5, terminated=True, env=0):
    """Let an episode of these rewards be observed, step by step."""
    for number, reward in enumerate(rewards, start=1):
        over = number == len(rewards)
        earned.observe(paid([reward], [over and terminated], [env]), np.array([over]), gamma)


def make_learner(algorithm="cdqn", seed=0, network=None, **settings):
    """A learner of a small network: 4 observations, 2 actions."""
    if network is None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = MLP(4, 2, (16, 16))
    settings = {"compile": "off", "learning_rate": 1e-3} | settings
    networks = {"q": Network(network, slow_copy_updates=50 if algorithm == "dcdqn" else None)}
    if algorithm == "dcdqn":
        networks["v"] = Network(copy.deepcopy(network), False, learning_rate_factor=3.0, slow_copy_updates=20)
    return Learner(networks, Config(algorithm=algorithm, **settings))


def train_learner(learner, updates, seed=0, **batch):
    """The results of so many updates with random batches."""
    rng = np.random.default_rng(seed)
    return [learner.update(random_batch(rng, **batch)) for _ in range(updates)]


def tensors(batch):
    """A batch as the loss of an algorithm sees it."""
    return TensorBatch(*(torch.from_numpy(array) for array in batch[:6]))


def make_trainer(num_envs=4, env=WalkEnv, **settings):
    """A trainer with a tiny network and a budget of 400 steps, of which 40 are warm-up."""
    tiny = {
        "steps": 400,
        "hidden": (8,),
        "batch_size": 8,
        "warmup_steps": 40,
        "memory_size": 200,
        "log_period_steps": 50,
        "update_period_steps": 4,
        "compile": "off",
    }
    vector_env = SyncVectorEnv([env] * num_envs, autoreset_mode=AutoresetMode.DISABLED)
    return Trainer(vector_env, describe(vector_env), Config(**(tiny | settings)))


def run_trainer(trainer, until):
    """The events up to a step."""
    return list(trainer.run(until))


def scaled(factor, env=partial(CountingEnv, lengths=(5, 8))):  # noqa: B008  a constant
    """Makes environments whose rewards are so many times larger."""
    return lambda: TransformReward(env(), lambda reward: factor * reward)


def rows_without_clock(events):
    """Rows of events, without the one value that depends on the machine."""
    rows = (event.row() for event in events)
    return [{name: value for name, value in row.items() if name != "steps_per_second"} for row in rows]
