"""MLflow: what reaches it, with a stand-in for the package, and what is said without it."""

import sys
from types import SimpleNamespace

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations.mlflow import MLflow
from helpers import small_agent


def test_mlflow_gets_settings_and_numbers(monkeypatch):
    parameters, metrics = {}, []
    fake = SimpleNamespace(
        log_params=parameters.update, log_metrics=lambda numbers, step: metrics.append((step, numbers))
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    small_agent().learn(200, callbacks=MLflow())
    assert parameters["env_id"] == "CartPole-v1"
    assert parameters["n_step"] == 3
    assert any("progress/q_mean" in numbers for _, numbers in metrics)
    assert all(isinstance(value, float) for _, numbers in metrics for value in numbers.values())


def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[mlflow\]'"):
        MLflow()
