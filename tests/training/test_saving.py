"""Which folder is whose: an agent is saved over itself, and over no other."""

import numpy as np
import pytest

import cdqn
from cdqn.errors import CheckpointError
from cdqn.training.run_config import read_data_name
from helpers import small_agent
from offline_data import SMALL, walk


def test_agent_is_saved_again_in_its_own_folder(tmp_path):
    agent = small_agent()
    agent.save(tmp_path / "run")
    agent.learn(60)
    agent.save(tmp_path / "run")
    loaded = cdqn.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.weights, agent.weights)
    assert loaded.history == agent.history
    assert read_data_name(tmp_path / "run") is None


def test_folder_of_other_data_is_refused(tmp_path):
    np.savez(tmp_path / "walk.npz", **walk())
    agent = cdqn.CDQN.fit(walk(), updates=5, **SMALL)
    agent.save(tmp_path / "run")
    assert read_data_name(tmp_path / "run") == "arrays"
    other = cdqn.CDQN.fit(tmp_path / "walk.npz", updates=5, **SMALL)
    assert other.config == agent.config
    with pytest.raises(CheckpointError, match="holds another run"):
        other.save(tmp_path / "run")
