"""RUN/config.json: what is written is what is read."""

import pytest

from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.training.run_config import read_data_name, read_run_config, write_run_config


class Agent:
    def __init__(self, env_id, data=None, **settings):
        self.env_id, self.data, self.config = env_id, data, Config(**settings)


@pytest.mark.parametrize("env_id", ["CartPole-v1", None])
def test_what_is_written_is_read(env_id, tmp_path):
    agent = Agent(env_id, gamma=0.5, hidden=(3, 4), learning_rate_drops=((0.5, 0.1),))
    write_run_config(tmp_path / "new" / "run", agent)
    assert read_run_config(tmp_path / "new" / "run") == (env_id, agent.config)


def test_environment_that_is_no_name_is_refused(tmp_path):
    write_run_config(tmp_path, Agent(3))
    with pytest.raises(CheckpointError, match="env_id is 3"):
        read_run_config(tmp_path)


@pytest.mark.parametrize("data", ["cartpole.npz", None])
def test_name_of_fixed_data_is_read(data, tmp_path):
    write_run_config(tmp_path, Agent("CartPole-v1", data))
    assert read_data_name(tmp_path) == data
    assert read_run_config(tmp_path)[0] == "CartPole-v1"


@pytest.mark.parametrize("content", ['{"data": 3}', "[]"])
def test_data_that_is_no_name_is_refused(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match="is damaged: data is"):
        read_data_name(tmp_path)
