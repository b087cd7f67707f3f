"""The demo at a small scale, run once for all tests of it."""

import pytest

from cdqn.experiments.demo.runs import DemoResult, DemoSetting, run_demo


@pytest.fixture(scope="session")
def small_setting() -> DemoSetting:
    return DemoSetting(transitions=200, updates=60, record_every=20, evaluate_every=30, evaluation_episodes=2)


@pytest.fixture(scope="session")
def small(small_setting) -> DemoResult:
    return run_demo(2, jobs=1, setting=small_setting)
