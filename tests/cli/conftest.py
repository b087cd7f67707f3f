"""Where commands are run, and a run that nothing happened to."""

from pathlib import Path

import pytest

from run_files import train


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Path:
    """A run of 3000 steps that nothing happened to."""
    run = tmp_path_factory.mktemp("cli") / "whole"
    assert train(run, steps=3000) == 0
    return run
