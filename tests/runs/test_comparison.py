"""The list of runs of a comparison: written once, read back as it was, refused where it is damaged."""

import json

import pytest

from cdqn.config import Config
from cdqn.errors import CheckpointError, UnsupportedEnvironmentError
from cdqn.runs.comparison import (
    create_comparison,
    is_comparison,
    plan_comparison,
    planned_runs,
    run_name,
    varied_settings,
)

CONFIGS = [Config(algorithm=name, seed=seed).resolved() for name in ("cdqn", "rg") for seed in (3, 4)]
PLAN = plan_comparison({"CartPole-v1": CONFIGS})


def test_runs_are_read_back_as_they_were_planned(tmp_path):
    assert not is_comparison(tmp_path / "both")
    create_comparison(tmp_path / "both", PLAN)
    assert is_comparison(tmp_path / "both")
    plan = planned_runs(tmp_path / "both")
    assert list(plan) == ["cdqn-seed3", "cdqn-seed4", "rg-seed3", "rg-seed4"]
    assert [run.config for run in plan.values()] == CONFIGS
    assert {run.env_id for run in plan.values()} == {"CartPole-v1"}
    assert varied_settings(tmp_path / "both") == []


def test_several_environments_and_variants_are_read_back_too(tmp_path):
    configs = [Config(algorithm="cdqn", gamma=gamma, seed=1).resolved() for gamma in (0.9, 0.95)]
    plan = plan_comparison({"CartPole-v1": configs, "cdqn/CliffWalking-v0": configs}, ["gamma"])
    names = [f"{env}/cdqn-gamma={g}-seed1" for env in ("CartPole-v1", "cdqn-CliffWalking-v0") for g in ("0.9", "0.95")]
    assert list(plan) == names
    create_comparison(tmp_path / "both", plan, ["gamma"])
    assert planned_runs(tmp_path / "both") == plan
    assert varied_settings(tmp_path / "both") == ["gamma"]


def test_comparison_of_an_earlier_version_has_one_environment_for_all_runs(tmp_path):
    runs = {run_name(config): config.to_json() for config in CONFIGS}
    (tmp_path / "comparison.json").write_text(json.dumps({"env_id": "CartPole-v1", "runs": runs}))
    assert planned_runs(tmp_path) == PLAN
    assert varied_settings(tmp_path) == []


class Settings:
    """As many settings as a name needs."""

    algorithm, seed = "mine:Own", 2
    hidden, learning_rate, network, env_kwargs = (64, 64), 2.5e-4, None, '{"../../etc": "a b"}' + "x" * 99


def test_name_of_a_run_is_one_readable_folder():
    assert run_name(Settings) == "mine-Own-seed2"
    assert (
        run_name(Settings, ["hidden", "learning_rate", "network"])
        == "mine-Own-hidden=64x64-learning_rate=0.00025-seed2"
    )


def test_name_of_a_run_never_leads_elsewhere():
    name = run_name(Settings, ["env_kwargs"])
    assert name.startswith("mine-Own-env_kwargs=etc-a-b-xxx")
    assert len(name) < 80
    assert not set(name) & set("/\\:*?\"<>| '$`")


def test_runs_and_environments_whose_names_would_be_the_same_are_numbered():
    configs = [Config(env_kwargs=text).resolved() for text in ('{"a": "b"}', '{"a": "B"}')]
    names = list(plan_comparison({"a/X-v0": configs[:2], "a:X-v0": configs[:1]}, ["env_kwargs"]))
    assert names == [
        "a-X-v0/cdqn-env_kwargs=a-b-seed0",
        "a-X-v0/cdqn-env_kwargs=a-B-seed0-2",
        "a-X-v0-2/cdqn-env_kwargs=a-b-seed0",
    ]


def test_what_cannot_work_leaves_no_folder(tmp_path):
    with pytest.raises(UnsupportedEnvironmentError):
        create_comparison(tmp_path / "both", plan_comparison({"CartPole-v1": CONFIGS, "CartPol-v1": CONFIGS}))
    assert list(tmp_path.iterdir()) == []


def test_second_comparison_does_not_overwrite_the_first(tmp_path):
    create_comparison(tmp_path / "both", plan_comparison({"CartPole-v1": CONFIGS[:1]}))
    with pytest.raises(CheckpointError, match="exists already"):
        create_comparison(tmp_path / "both", PLAN)
    assert list(planned_runs(tmp_path / "both")) == ["cdqn-seed3"]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"env_id": "CartPole-v1", "runs": [1]},
        {"env_id": "CartPole-v1"},
        {"runs": {"a": {}}},
        {"env_id": 3, "runs": {"a": {}}},
    ],
)
def test_damaged_list_is_named(content, tmp_path):
    (tmp_path / "comparison.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"comparison\.json is damaged"):
        planned_runs(tmp_path)


@pytest.mark.parametrize("varied", ["gamma", [1], ["no_setting"], {"gamma": 1}])
def test_varied_settings_that_are_none_are_named(varied, tmp_path):
    (tmp_path / "comparison.json").write_text(json.dumps({"varied": varied, "runs": {}}))
    with pytest.raises(CheckpointError, match=r"comparison\.json is damaged"):
        varied_settings(tmp_path)
