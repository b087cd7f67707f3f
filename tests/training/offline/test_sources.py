"""Where data comes from: each source gives the same rows, and what cannot be one is refused in plain words."""

import pickle

import numpy as np
import pytest

import cdqn
from cdqn.envs import describe, make_vec, observation_adapter
from cdqn.errors import CheckpointError, ConfigError
from cdqn.training.offline.sources import open_source
from helpers import WalkEnv
from offline_data import NAMES, SMALL, FramesEnv, walk


def rows_of(source, env):
    vector_env = make_vec(env, 1)
    return source.data(describe(vector_env), observation_adapter(vector_env), False)


def test_file_holds_what_the_arrays_do(tmp_path):
    np.savez(tmp_path / "walk.npz", **walk())
    source = open_source(tmp_path / "walk.npz")
    assert source.name == str(tmp_path / "walk.npz")
    for mine, theirs in zip(source.columns, open_source(walk()).columns, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_spaces_are_told_by_the_rows():
    assert open_source(walk()).spaces == {"actions": 2, "shape": [3], "dtype": "float32"}
    board = np.zeros((2, 5, 5, 2), bool)
    numbered = dict(zip(NAMES, ([3, 4], [0, 2], [0, 1], [4, 6], [0, 1]), strict=False))
    assert open_source(numbered).spaces == {"actions": 3, "states": 7}
    shown = numbered | {"observations": board, "next_observations": board}
    assert open_source(shown).spaces == {"actions": 3, "shape": [5, 5, 2], "dtype": "bool"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observations": [0.5, 1.0], "next_observations": [1.0, 2.0]}, r"shape \(2,\) .* observations\[:, None\]"),
        ({"observations": [0, -1]}, "has the state -1: states are numbered from 0 on"),
        ({"actions": [0, -2]}, "row 1: action -2 is below 0"),
    ],
)
def test_spaces_that_cannot_be(change, message):
    good = dict(zip(NAMES, ([0, 1], [0, 1], [0, 1], [1, 2], [0, 1]), strict=False))
    with pytest.raises(ConfigError, match=message):
        open_source(good | change)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("loading a file has run code",))


def test_files_that_are_no_data_are_refused_and_run_no_code(tmp_path):
    np.savez(tmp_path / "objects.npz", **(walk(2) | {"rewards": np.array([Trap(), Trap()])}))
    (tmp_path / "pickled.npz").write_bytes(pickle.dumps(Trap()))
    (tmp_path / "text.npz").write_text("observations")
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.savez(tmp_path / "cut.npz", **walk())
    whole = (tmp_path / "cut.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    for name in ("objects.npz", "pickled.npz", "text.npz", "cut.npz"):
        with pytest.raises(ConfigError, match=r"cannot be read as an \.npz file of numbers"):
            open_source(tmp_path / name)
    with pytest.raises(ConfigError, match="holds one array"):
        open_source(tmp_path / "one.npy")
    with pytest.raises(ConfigError, match="there is no file"):
        open_source(tmp_path / "none.npz")
    with pytest.raises(ConfigError, match="is a folder, and not that of a run"):
        open_source(tmp_path)
    with pytest.raises(ConfigError, match="the data set is list: give a mapping"):
        open_source([1, 2])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """An agent that has played, with its folder."""
    settings = SMALL | {"warmup_steps": 40, "update_period_steps": 8, "seed": 1}
    agent = cdqn.CDQN("CartPole-v1", n_step=2, gamma=0.9, **settings)
    agent.learn(100)
    return agent.save(tmp_path_factory.mktemp("runs") / "run"), agent


def test_memory_of_a_run_gives_its_rows_with_their_settings(run):
    folder, agent = run
    source = open_source(folder)
    data = rows_of(source, "CartPole-v1")
    (rows,) = data.chunks()
    stored = agent.trainer.replay.state_dict()["store"]
    np.testing.assert_array_equal(rows.observation, stored["observation"])
    np.testing.assert_array_equal(rows.reward, stored["reward"])
    assert (source.env, source.fixed) == ("CartPole-v1", {"n_step": 2, "reward_clip": False, "gamma": 0.9})
    assert (data.n_step, data.reward_abs_max, data.episodes) == (2, 1.0, None)
    assert data.rewards.tolist() == [1.0], "the scale of single rewards, not of sums of two"


def test_memory_of_a_run_is_for_its_own_environment(run):
    with pytest.raises(ConfigError, match=r"observations of shape \(4,\) .* the environment \(3,\)"):
        rows_of(open_source(run[0]), WalkEnv())


def test_memory_in_pieces_is_the_same(run, monkeypatch):
    monkeypatch.setattr("cdqn.training.offline.sources.CHUNK", 7)
    data = rows_of(open_source(run[0]), "CartPole-v1")
    pieces = list(data.chunks())
    assert len(pieces) == -(-data.rows // 7)
    stored = run[1].trainer.replay.state_dict()["store"]
    np.testing.assert_array_equal(np.concatenate([piece.action for piece in pieces]), stored["action"])


def test_memory_of_frames_is_read(tmp_path):
    pytest.importorskip("zstandard")
    settings = SMALL | {"channels": (2, 2, 2), "warmup_steps": 20, "memory_size": 100, "update_period_steps": 50}
    agent = cdqn.CDQN(FramesEnv(), **settings).learn(30)
    source = open_source(agent.save(tmp_path / "run"))
    vector_env = make_vec(FramesEnv(), 1)
    (rows,) = source.data(describe(vector_env), None, False).chunks()
    slots = np.arange(len(agent.trainer.replay))
    np.testing.assert_array_equal(rows.observation, agent.trainer.replay.read(slots, slots).observation)


def test_run_without_rows_or_with_a_damaged_memory_is_refused(run, tmp_path, monkeypatch):
    empty = cdqn.CDQN("CartPole-v1", **SMALL).save(tmp_path / "empty")
    with pytest.raises(ConfigError, match=r"the memory of .*empty is empty: train the run"):
        open_source(empty)
    monkeypatch.setattr("cdqn.training.offline.sources.load_checkpoint", lambda run: {"trainer": {"replay": {}}})
    with pytest.raises(CheckpointError, match=r"the memory of .* cannot be read"):
        open_source(run[0])
