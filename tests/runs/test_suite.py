"""The suite: which runs it plans, when it continues a folder and when it refuses to."""

import csv
import json
import shutil

import pytest

from cdqn.algorithms import ALGORITHMS
from cdqn.cli.main import main
from cdqn.errors import CheckpointError, ConfigError, MissingPackageError
from cdqn.presets import make_config
from cdqn.runs.suite import EVALUATIONS, open_suite, plan_suite
from cdqn.tasks.suite import TASKS


def plan(scale="laptop", tasks=("CartPole",), algorithms=("cdqn", "dqn"), first_seed=0, seeds=2):
    return plan_suite(scale, list(tasks), list(algorithms), first_seed, seeds)


def test_plan_has_each_task_algorithm_and_seed_once_seed_by_seed():
    names = list(plan(tasks=("CartPole", "CliffWalking"), first_seed=3))
    assert names == [
        f"{task}/{algorithm}-seed{seed}"
        for seed in (3, 4)
        for task in ("CartPole", "CliffWalking")
        for algorithm in ("cdqn", "dqn")
    ]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_runs_have_the_algorithms_own_defaults_and_differ_only_in_when_they_evaluate(algorithm):
    config = plan(algorithms=(algorithm,))[f"CartPole/{algorithm}-seed0"].config
    default = make_config(algorithm, "classic-control", steps=TASKS["CartPole"].steps, seed=0).resolved()
    mine, theirs = config.to_json(), default.to_json()
    assert {name for name in mine if mine[name] != theirs[name]} <= {
        "evaluation_period_steps",
        "evaluation_episodes",
        "checkpoint_period_steps",
    }
    assert config.evaluation_period_steps * EVALUATIONS == config.steps


def test_names_are_found_whatever_their_case_and_near_ones_are_offered():
    assert list(plan(tasks=("cartpole",), algorithms=("CDQN",), seeds=1)) == ["CartPole/cdqn-seed0"]
    with pytest.raises(ConfigError, match="no task 'CartPol': did you mean CartPole"):
        plan(tasks=("CartPol",))
    with pytest.raises(ConfigError, match="no algorithm 'dqnn': did you mean dqn"):
        plan(algorithms=("dqnn",))
    with pytest.raises(ConfigError, match="at least 1"):
        plan(seeds=0)


def test_folder_is_continued_with_more_seeds_and_refused_with_other_settings(tmp_path):
    folder = tmp_path / "suite"
    open_suite(folder, "laptop", plan(seeds=1))
    open_suite(folder, "laptop", plan(seeds=2))
    runs = json.loads((folder / "suite.json").read_text())["runs"]
    assert len(runs) == 4
    changed = plan(seeds=2)
    name = "CartPole/dqn-seed0"
    changed[name] = changed[name]._replace(config=make_config("dqn", "classic-control", steps=77_000).resolved())
    with pytest.raises(ConfigError, match=r"CartPole/dqn-seed0 with \w+ .* is asked for"):
        open_suite(folder, "laptop", changed)
    with pytest.raises(ConfigError, match="begun with --scale laptop, not smoke"):
        open_suite(folder, "smoke", plan("smoke"))
    assert json.loads((folder / "suite.json").read_text())["runs"] == runs, "a refusal changes nothing"


def test_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(CheckpointError, match="no suite"):
        open_suite(tmp_path, "laptop", plan())


def test_missing_package_is_named_with_the_line_that_installs_it(tmp_path, monkeypatch):
    def missing(env_id, config):
        raise MissingPackageError("Box2D is not installed")

    monkeypatch.setattr("cdqn.runs.suite.Agent.from_config", missing)
    with pytest.raises(MissingPackageError, match=r"LunarLander needs .* pip install 'cdqn\[box2d\]'"):
        open_suite(tmp_path / "suite", "laptop", plan(tasks=("LunarLander",)))
    assert not (tmp_path / "suite").exists()


def test_scores_are_0_for_idle_or_random_play_and_1_for_the_reference():
    cliff, cartpole = TASKS["CliffWalking"], TASKS["CartPole"]
    assert (cliff.normalized(-200), cliff.normalized(-900), cliff.normalized(cliff.reference)) == (0, 0, 1)
    assert (cartpole.normalized(cartpole.random), cartpole.normalized(500)) == (0, 1)
    for task in TASKS.values():
        assert task.random < task.reference


def test_smoke_suite_runs_is_continued_and_leaves_table_and_picture(tmp_path, capsys):
    folder = tmp_path / "suite"
    command = ["suite", "--scale", "smoke", "--tasks", "CliffWalking", "--algorithms", "cdqn,rg", "--out", str(folder)]
    assert main([*command, "--seeds", "1", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    for word in ("CliffWalking", "C-DQN", "area under the curve", "C-DQN − RG"):
        assert word in printed
    assert (folder / "suite.png").stat().st_size > 10_000
    with open(folder / "suite.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["task"], row["algorithm"], row["seed"]) for row in rows] == [
        ("CliffWalking", "cdqn", "0"),
        ("CliffWalking", "rg", "0"),
    ]
    metrics = (folder / "CliffWalking" / "cdqn-seed0" / "metrics.jsonl").read_bytes()
    shutil.rmtree(folder / "CliffWalking" / "rg-seed0")
    assert main(["resume", str(folder), "--jobs", "1"]) == 0
    assert (folder / "CliffWalking" / "cdqn-seed0" / "metrics.jsonl").read_bytes() == metrics, "not trained again"
    assert (folder / "CliffWalking" / "rg-seed0" / "metrics.jsonl").exists(), "what was missing is trained"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda runs: runs.update({"../elsewhere": runs["CartPole/cdqn-seed0"]}), "outside"),
        (lambda runs: runs["CartPole/cdqn-seed0"].update(env_id="evil:Env-v0"), "no task of the suite"),
        (lambda runs: runs["CartPole/cdqn-seed0"].update(gamma=7), "damaged"),
        (lambda runs: runs.update({"CartPole/x": 3}), "damaged"),
    ],
)
def test_damaged_or_foreign_suite_is_refused_before_anything_is_trained(tmp_path, capsys, change, words):
    folder = tmp_path / "suite"
    open_suite(folder, "smoke", plan("smoke", seeds=1))
    content = json.loads((folder / "suite.json").read_text())
    change(content["runs"])
    (folder / "suite.json").write_text(json.dumps(content))
    assert main(["resume", str(folder)]) == 1
    assert words in capsys.readouterr().err
    assert not list(tmp_path.rglob("config.json"))


def test_damaged_list_of_runs_is_refused_by_the_suite_itself_too(tmp_path):
    open_suite(tmp_path / "suite", "smoke", plan("smoke", seeds=1))
    (tmp_path / "suite" / "suite.json").write_text('{"scale": "smoke", "runs": {"CartPole/cdqn-seed0": 3}}')
    with pytest.raises(CheckpointError, match="damaged"):
        open_suite(tmp_path / "suite", "smoke", plan("smoke", seeds=1))
