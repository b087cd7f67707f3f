"""The list of runs of a comparison: written once, read back as it was, refused where it is damaged."""

import json

import pytest

from cdqn.config import Config
from cdqn.errors import CheckpointError, UnsupportedEnvironmentError
from cdqn.runs.comparison import create_comparison, is_comparison, planned_runs, run_name

CONFIGS = [Config(algorithm=name, seed=seed).resolved() for name in ("cdqn", "rg") for seed in (3, 4)]


def test_runs_are_read_back_as_they_were_planned(tmp_path):
    assert not is_comparison(tmp_path / "both")
    create_comparison(tmp_path / "both", "CartPole-v1", CONFIGS)
    assert is_comparison(tmp_path / "both")
    plan = planned_runs(tmp_path / "both")
    assert list(plan) == ["cdqn-seed3", "cdqn-seed4", "rg-seed3", "rg-seed4"]
    assert [run.config for run in plan.values()] == CONFIGS
    assert {run.env_id for run in plan.values()} == {"CartPole-v1"}


def test_name_of_a_run_is_one_folder():
    class Own:
        algorithm, seed = "mine:Own", 2

    assert run_name(Own) == "mine-Own-seed2"


def test_what_cannot_work_leaves_no_folder(tmp_path):
    with pytest.raises(UnsupportedEnvironmentError):
        create_comparison(tmp_path / "both", "CartPol-v1", CONFIGS)
    assert list(tmp_path.iterdir()) == []


def test_second_comparison_does_not_overwrite_the_first(tmp_path):
    create_comparison(tmp_path / "both", "CartPole-v1", CONFIGS[:1])
    with pytest.raises(CheckpointError, match="exists already"):
        create_comparison(tmp_path / "both", "CartPole-v1", CONFIGS)
    assert list(planned_runs(tmp_path / "both")) == ["cdqn-seed3"]


@pytest.mark.parametrize("content", [[], {}, {"env_id": "CartPole-v1", "runs": [1]}, {"env_id": "CartPole-v1"}])
def test_damaged_list_is_named(content, tmp_path):
    (tmp_path / "comparison.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"comparison\.json is damaged"):
        planned_runs(tmp_path)
