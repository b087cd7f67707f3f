"""Trackers of experiments: what reaches them, with stand-ins for the packages, and what is said without these."""

import sys
from types import SimpleNamespace

import pytest

import cdqn
from cdqn.errors import MissingPackageError
from cdqn.integrations.mlflow import MLflow
from cdqn.integrations.wandb import WandB

SMALL = {"hidden": (8,), "warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "compile": "off"}


def agent():
    return cdqn.CDQN("CartPole-v1", steps=200, **SMALL)


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
    agent().learn(200, callbacks=WandB(project="mine"))
    assert fake.arguments == {"project": "mine"}
    assert fake.config["env_id"] == "CartPole-v1"
    assert fake.config["target_period_updates"] == 20
    steps = [step for step, _ in fake.logged]
    assert steps == sorted(steps)
    names = set().union(*(numbers for _, numbers in fake.logged))
    assert {"episode/return", "progress/loss", "progress/dqn_share", "progress/q_mean"} <= names


def test_mlflow_gets_settings_and_numbers(monkeypatch):
    parameters, metrics = {}, []
    fake = SimpleNamespace(
        log_params=parameters.update, log_metrics=lambda numbers, step: metrics.append((step, numbers))
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    agent().learn(200, callbacks=MLflow())
    assert parameters["env_id"] == "CartPole-v1"
    assert parameters["n_step"] == 3
    assert any("progress/q_mean" in numbers for _, numbers in metrics)
    assert all(isinstance(value, float) for _, numbers in metrics for value in numbers.values())


@pytest.mark.parametrize(("package", "callback"), [("wandb", WandB), ("mlflow", MLflow)])
def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch, package, callback):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"pip install 'cdqn\[{package}\]'"):
        callback()
