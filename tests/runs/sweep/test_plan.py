"""What a sweep was asked for: checked, written down, read back, and refused where it is another's."""

import dataclasses
import json

import pytest

from cdqn.errors import CdqnError, CheckpointError, ConfigError, UnsupportedEnvironmentError
from cdqn.runs.sweep.plan import (
    SweepPlan,
    is_sweep,
    open_sweep,
    plan_sweep,
    read_sweep,
    require_known_trials,
)
from cdqn.runs.sweep.trials import Trial
from cdqn.storage import named_code
from small_sweep import SPACE, TINY, small_plan


@pytest.fixture(scope="module")
def plan() -> SweepPlan:
    return small_plan(seeds=2)


def test_seeds_that_people_report_are_not_used_to_choose(plan):
    assert list(plan.seed_list()) == [1000, 1001]
    assert list(small_plan(seed=7).seed_list()) == [7]


def test_a_run_has_ten_evaluations_unless_it_is_said_otherwise():
    long = plan_sweep("CartPole-v1", SPACE, settings={"steps": 20_000}).base
    assert (long.evaluation_period_steps, long.log_period_steps) == (2_000, 1_000)
    short = plan_sweep("CartPole-v1", SPACE, settings={"steps": 6_000}).base
    assert (short.evaluation_period_steps, short.log_period_steps) == (600, 600)
    seldom = plan_sweep("CartPole-v1", SPACE, settings={"steps": 6_000, "log_period_steps": 1_500}).base
    assert (seldom.evaluation_period_steps, seldom.log_period_steps) == (1_500, 1_500)
    assert small_plan().base.evaluation_period_steps == 60


def test_trial_0_has_the_defaults_and_others_what_was_proposed(plan):
    assert plan.config_of(Trial(0, {}), 1001) == dataclasses.replace(plan.base, seed=1001).resolved()
    config = plan.config_of(Trial(4, {"learning_rate": 0.02, "n_step": 1}), 1000)
    assert (config.learning_rate, config.n_step, config.hidden) == (0.02, 1, (8,))
    assert plan.settings_of(Trial(0, {})) == {"learning_rate": 1e-3, "n_step": 3}


def test_preset_is_kept_only_where_it_is_not_the_usual_one():
    assert plan_sweep("CartPole-v1", SPACE, preset="classic-control").preset is None
    other = plan_sweep("CartPole-v1", SPACE, preset="paper-B.1", settings={"memory_size": 1000, "batch_size": 8})
    assert other.preset == "paper-B.1"
    assert other.base.target_period_updates == 300


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trials": 0}, "trials is 0: it must be a whole number"),
        ({"trials": 10**9}, "at most 10,000"),
        ({"seeds": 10**9}, "at most 100"),
        ({"space": {"channels": [[8, 8, 8], [16, 16, 16]]}}, "channels act on images, and CartPole-v1 has none"),
        ({"algorithm": "ddqn"}, "ddqn"),
        ({"settings": {"gama": 0.9}}, "no setting 'gama': did you mean gamma"),
        ({"settings": {"steps": 500}}, "nothing would be learned"),
    ],
)
def test_what_cannot_work_is_told(change, words):
    with pytest.raises(ConfigError, match=words):
        plan_sweep(**({"env_id": "CartPole-v1", "space": SPACE} | change))


def test_environment_that_does_not_exist_is_told():
    with pytest.raises(UnsupportedEnvironmentError, match="CartPole-v1"):
        plan_sweep("CartPol-v1", SPACE)


def test_plan_is_read_back_as_it_was_written(tmp_path, plan):
    folder = tmp_path / "sweep"
    assert not is_sweep(folder)
    open_sweep(folder, plan)
    assert is_sweep(folder)
    assert read_sweep(folder, ["cli_envs"]) == plan
    text = (folder / "space.toml").read_text()
    assert "learning_rate = {low = 0.0001, high = 0.1, log = true}" in text
    assert plan_sweep("cli_envs:Line-v0", folder / "space.toml", settings=TINY).space == plan.space


def test_more_trials_may_be_asked_for_and_nothing_else(tmp_path, plan):
    folder = tmp_path / "sweep"
    open_sweep(folder, plan)
    open_sweep(folder, dataclasses.replace(plan, trials=9))
    assert read_sweep(folder, ["cli_envs"]).trials == 9
    written = (folder / "sweep.json").read_bytes()
    others = {
        r"n_step = \[1, 2, 3\] in its space, and n_step = \[1, 2\] is asked for": small_plan(
            space=SPACE | {"n_step": [1, 2]}, seeds=2
        ),
        r"n_step = \[1, 2, 3\] in its space, and no n_step is asked for": small_plan(
            space={"learning_rate": SPACE["learning_rate"]}, seeds=2
        ),
        "steps 300, and steps 360 is asked for": small_plan(steps=360, seeds=2),
        "algorithm cdqn, and algorithm dqn": dataclasses.replace(
            plan, base=dataclasses.replace(plan.base, algorithm="dqn")
        ),
        "seeds 2, and 1 is": dataclasses.replace(plan, seeds=1),
        "prune True, and False": dataclasses.replace(plan, prune=False),
        "env_id cli_envs:Line-v0, and CartPole-v1": dataclasses.replace(plan, env_id="CartPole-v1"),
    }
    for words, other in others.items():
        with pytest.raises(ConfigError, match=f"another sweep, with {words}.*: choose another --out"):
            open_sweep(folder, other)
    assert (folder / "sweep.json").read_bytes() == written, "a refusal changes nothing"


def test_folder_of_something_else_is_refused(tmp_path, plan):
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(CheckpointError, match="exists already"):
        open_sweep(tmp_path, plan)


def test_folder_from_elsewhere_imports_nothing_and_leads_nowhere(tmp_path, plan):
    folder = tmp_path / "sweep"
    open_sweep(folder, plan)
    with pytest.raises(CheckpointError, match="--allow-import cli_envs"):
        read_sweep(folder)
    (folder / "trial-000").symlink_to(tmp_path)
    with pytest.raises(CheckpointError, match="symbolic link"):
        read_sweep(folder, ["cli_envs"])


def test_code_of_a_folder_is_imported_by_the_users_word_alone(tmp_path, monkeypatch):
    wrapper = "gymnasium.wrappers:RecordEpisodeStatistics"
    open_sweep(tmp_path / "sweep", small_plan(wrapper=wrapper))
    monkeypatch.setattr(named_code, "_objects", {})  # as in another process
    with pytest.raises(CheckpointError, match=r"--allow-import gymnasium\.wrappers"):
        read_sweep(tmp_path / "sweep", ["cli_envs"])
    assert named_code._objects == {}
    assert read_sweep(tmp_path / "sweep", ["cli_envs", "gymnasium.wrappers"]).base.wrapper == (wrapper,)
    assert list(named_code._objects) == [wrapper]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.pop("space"), "damaged"),
        (lambda content: content.update(space={"replay": ["uniform", "evil:Memory"]}), "is code"),
        (lambda content: content["base"].update(algorithm="evil:Algorithm"), "allow-import evil"),
        (lambda content: content["base"].update(gamma=7), "gamma is 7"),
        (lambda content: content.update(trials="many"), "trials is 'many'"),
        (lambda content: content.update(seeds=None), "seeds is 0"),
        (lambda content: content.update(trials=10**9), "at most 10,000"),
        (lambda content: content.update(prune="yes"), "damaged"),
        (lambda content: content.update(env_id=3), "damaged"),
        (lambda content: content.update(given=[1]), "damaged"),
    ],
)
def test_damaged_plan_is_refused(tmp_path, plan, change, words):
    open_sweep(tmp_path / "sweep", plan)
    path = tmp_path / "sweep" / "sweep.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(CdqnError, match=words):
        read_sweep(tmp_path / "sweep", ["cli_envs"])


@pytest.mark.parametrize(
    "trial",
    [
        Trial(1, {"n_step": 99}),
        Trial(1, {"gamma": 0.5}),
        Trial(1, {"learning_rate": "fast"}),
        Trial(1, {}, evaluations={5: [(1, 1.0)]}),
    ],
)
def test_trials_that_are_not_of_the_plan_are_refused(tmp_path, plan, trial):
    require_known_trials(tmp_path, plan, [Trial(1, {"n_step": 2}, evaluations={1001: [(1, 1.0)]})])
    with pytest.raises(CheckpointError, match=r"trials\.json is damaged: trial-001"):
        require_known_trials(tmp_path, plan, [trial])
