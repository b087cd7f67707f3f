"""Weights & Biases: what reaches it, with a stand-in for the package, and what is said without it."""

import sys

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations.wandb import WandB
from helpers import small_agent


class FakeWandB:
    def __init__(self):
        self.logged, self.config, self.arguments = [], {}, None

    def init(self, **arguments):
        self.arguments = arguments
        return self

    def log(self, numbers, step):
        self.logged.append((step, numbers))


def test_wandb_gets_settings_and_numbers(monkeypatch):
    fake = FakeWandB()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    small_agent().learn(200, callbacks=WandB(project="mine"))
    assert fake.arguments == {"project": "mine"}
    assert fake.config["env_id"] == "CartPole-v1"
    assert fake.config["target_period_updates"] == 20
    steps = [step for step, _ in fake.logged]
    assert steps == sorted(steps)
    names = set().union(*(numbers for _, numbers in fake.logged))
    assert {"episode/return", "progress/loss", "progress/dqn_share", "progress/q_mean"} <= names


def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[wandb\]'"):
        WandB()
