"""Environments that hang or whose processes die are named; nobody waits in silence."""

import os
import signal
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import cdqn
from cdqn.errors import ConfigError, EnvironmentTimeoutError, UnsupportedEnvironmentError
from cdqn.training import environment_call
from cdqn.training.environment_call import EnvironmentCall

SMALL = {"hidden": (8,), "warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "compile": "off"}


class Moody(gym.Env):
    """Hangs for an hour, or dies, at a step or at its second reset."""

    observation_space = Box(-1, 1, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, hang_at=None, hang_in_reset=False, die_at=None):
        self.hang_at, self.hang_in_reset, self.die_at = hang_at, hang_in_reset, die_at
        self.made = self.resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.resets += 1
        self.time = 0
        if self.hang_in_reset and self.resets == 2:
            threading.Event().wait(3600)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.made += 1
        self.time += 1
        if self.made == self.hang_at:
            threading.Event().wait(3600)
        if self.made == self.die_at:
            os._exit(7)
        return np.zeros(2, np.float32), 1.0, False, self.time == 10, {}


def test_step_that_hangs_is_given_up_with_its_number():
    agent = cdqn.CDQN(Moody(hang_at=25), environment_timeout_seconds=0.3, **SMALL)
    with pytest.raises(EnvironmentTimeoutError, match=r"from step 25 of the run within .* 0\.3.*resume from the last"):
        agent.learn(100)
    assert agent.steps == 24


def test_reset_that_hangs_is_given_up():
    agent = cdqn.CDQN(Moody(hang_in_reset=True), environment_timeout_seconds=0.3, **SMALL)
    with pytest.raises(EnvironmentTimeoutError, match="from the reset after step 10 of the run"):
        agent.learn(100)


def test_evaluation_that_hangs_is_given_up():
    agent = cdqn.CDQN(Moody(), environment_timeout_seconds=0.3, **SMALL)
    with pytest.raises(EnvironmentTimeoutError, match="step 5"):
        agent.evaluate(1, env=Moody(hang_at=5))


def test_alarm_of_the_process_is_left_as_it_was():
    before = signal.getsignal(signal.SIGALRM)
    cdqn.CDQN(Moody(), environment_timeout_seconds=60.0, **SMALL).learn(100)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_limit_outside_of_the_main_thread_is_refused():
    caught = []

    def work():
        try:
            cdqn.CDQN(Moody(), environment_timeout_seconds=1.0, **SMALL)
        except ConfigError as error:
            caught.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "main thread" in caught[0]


def test_long_silence_is_explained_once_for_each_wait(monkeypatch, capsys):
    monkeypatch.setattr(environment_call, "NOTICE_SECONDS", 0.05)
    monkeypatch.setattr(environment_call, "LOOK_SECONDS", 0.01)
    call = EnvironmentCall(gym.make_vec("CartPole-v1", num_envs=1))
    said = ""
    for number in (1, 2):
        with call(f"step {number} of the run"):
            while said.count("still waiting") < number:  # until the other thread has spoken
                time.sleep(0.01)
                said += capsys.readouterr().err
    assert "step 1 of the run has not returned" in said
    assert "--environment-timeout-seconds" in said
    assert said.count("still waiting") == 2


def test_dead_process_of_an_asynchronous_environment_is_named():
    makers = [Moody, lambda: Moody(die_at=20), Moody]
    env = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
    agent = cdqn.CDQN(env, **SMALL)
    with pytest.raises(UnsupportedEnvironmentError, match=r"environment 1 died \(exit code 7\) during step 58"):
        agent.learn(200)
