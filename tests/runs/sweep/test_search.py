"""The search: which run comes next, what a trial is worth, and that a kill changes nothing of it."""

import multiprocessing
import os
import shutil
import signal

import pytest

from cdqn.errors import CheckpointError
from cdqn.runs import run_pool
from cdqn.runs.folders import locked
from cdqn.runs.sweep import search, sweep
from cdqn.runs.sweep.plan import open_sweep, read_sweep
from cdqn.runs.sweep.search import Search, resume_sweep, run_sweep
from cdqn.runs.sweep.trial_run import TrialRunEnd
from cdqn.runs.sweep.trials import Trial, best_of, is_beaten, read_trials
from run_files import InlinePool, assert_same_end
from small_sweep import SPACE, TINY, small_plan


class Played:
    """A search whose runs are a formula: the larger the step size, the better; what it was asked, in order."""

    def __init__(self, folder, plan, told=None):
        self.folder, self.names = folder, []
        self.search = Search(folder, plan, told)

    def take(self):
        item = self.search.take()
        if item is not None:
            self.names.append(item[0])
        return item

    def end(self, item, finished=True):
        name, task = item
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / name / "config.json").touch()
        config = task.planned.config
        means = [config.learning_rate * step + config.seed for step in (60, 120, 180, 240, 300)]
        count = next((i + 1 for i in range(4) if is_beaten(means[: i + 1], task.limits)), 5)
        evaluations = [(60 * (i + 1), mean) for i, mean in enumerate(means[:count])]
        self.search.end_run(name, TrialRunEnd(finished and count == 5, finished and count < 5, evaluations))

    def play(self):
        while (item := self.take()) is not None:
            self.end(item)
        return self.search.trials


@pytest.fixture
def begin(tmp_path):
    def begin(name="sweep", told=None, **arguments):
        plan = small_plan(**arguments)
        open_sweep(tmp_path / name, plan)
        return Played(tmp_path / name, plan, told)

    return begin


def test_first_trial_is_the_defaults_and_others_differ(begin):
    played = begin(trials=12)
    trials = played.play()
    assert trials[0].settings == {}
    assert len({tuple(trial.settings.values()) for trial in trials}) == 12
    assert played.names == [f"trial-{number:03d}/seed1000" for number in range(12)]
    assert read_trials(played.folder) == trials


def test_bad_trials_are_given_up_and_their_other_seeds_not_begun(begin):
    told = []
    played = begin(trials=14, seeds=2, told=lambda trial, trials: told.append(trial.number))
    trials = played.play()
    pruned = [trial for trial in trials if trial.state == "pruned"]
    assert 2 <= len(pruned) <= 9
    assert min(trial.number for trial in pruned) >= 4, "before there were four to judge"
    for trial in trials:
        assert (f"{trial.name}/seed1001" in played.names) == (trial.state == "complete")
        assert trial.steps == (600 if trial.state == "complete" else 180)
    rates = [trial.settings["learning_rate"] for trial in trials[1:]]
    assert best_of(trials).settings["learning_rate"] == max(rates)
    assert told == list(range(14))


def test_nothing_is_given_up_when_that_is_not_wished(begin):
    assert {trial.state for trial in begin(trials=9, prune=False).play()} == {"complete"}


def test_search_finds_better_settings_than_chance(begin):
    rates = [trial.settings["learning_rate"] for trial in begin(trials=25).play()[1:]]
    assert sorted(rates[10:])[7] > 2 * sorted(rates[:9])[4]


def test_interrupted_search_makes_the_same_trials(begin):
    whole = begin("whole", trials=13, seeds=2).play()
    for kept in (0, 1, 16):
        played = begin(f"parts{kept}", trials=13, seeds=2)
        for _ in range(kept):
            played.end(played.take())
        item = played.take()  # begun, and its end was never told, or only that it was stopped
        if kept % 2:
            played.end(item, finished=False)
        again = Played(played.folder, small_plan(trials=13, seeds=2))
        assert again.play() == whole
        assert again.names[0] == item[0], "what was under way is not the first to go on"


def test_beginning_is_the_same_for_any_number_of_jobs(begin):
    alone = begin("alone", trials=10).play()
    beside = begin("beside", trials=10)
    under_way = [beside.take() for _ in range(3)]
    while under_way:
        beside.end(under_way.pop())  # the last to begin ends first
        if (item := beside.take()) is not None:
            under_way.append(item)
    settings = [trial.settings for trial in sorted(beside.search.trials, key=lambda trial: trial.number)]
    assert settings == [trial.settings for trial in alone]


def test_free_worker_waits_for_the_first_seed_of_the_last_trial(begin):
    played = begin(trials=1, seeds=3)
    first = played.take()
    assert played.take() is None
    played.end(first)
    second, third = played.take(), played.take()
    assert played.take() is None
    played.end(third)
    assert played.search.trials[0].state == "running"
    played.end(second)
    assert played.search.trials[0].state == "complete"
    assert list(played.search.trials[0].evaluations) == [1000, 1001, 1002]


def test_small_space_is_tried_out_once(begin):
    """6 combinations, of which the defaults are one; with others beside the defaults they are 6 and the defaults."""
    space = {"n_step": [1, 2, 3], "dueling": [True, False]}
    trials = begin("inside", trials=40, space=space).play()
    assert len(trials) == 6
    assert len({tuple(small_plan(space=space).settings_of(trial).values()) for trial in trials}) == 6
    assert len(begin("beside", trials=40, space={"n_step": [1, 2], "dueling": [True, False]}).play()) == 5


def test_failed_trial_leaves_the_others_alone_and_is_tried_again_later(begin):
    played = begin(trials=3)
    name, _ = played.take()
    assert not played.search.is_lost(name, died=True)
    assert played.search.is_lost(name, died=True), "it died twice"
    played.search.fail(name, "its process was killed")
    assert [trial.state for trial in played.play()] == ["failed", "complete", "complete"]
    assert played.search.is_lost("trial-001/seed1000", died=False)
    assert read_trials(played.folder)[0].problem == "its process was killed"
    again = Played(played.folder, small_plan())
    assert [trial.state for trial in again.play()] == ["complete"] * 3
    assert again.names == [name]


def test_folder_that_the_machines_do_not_share_is_said(begin):
    played = begin(trials=1)
    name, _ = played.take()
    played.search.end_run(name, TrialRunEnd(True, False, [(60, 1.0)]))
    assert played.search.trials[0].state == "failed"
    assert "not the same folder on all machines" in played.search.trials[0].problem


def killed(folder, plan, at_word):
    """A sweep in a process that is killed, without a warning, when a run has said so many words."""
    real, said = run_pool._pass_on, 0

    def pass_on(tell, event, agent):
        nonlocal said
        said += 1
        if said == at_word:
            os.kill(os.getpid(), signal.SIGKILL)
        real(tell, event, agent)

    run_pool._pass_on = pass_on
    run_sweep(folder, plan, InlinePool())


def test_killed_sweep_goes_on_and_ends_as_the_one_that_was_not(tmp_path):
    plan = small_plan(trials=2)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    open_sweep(whole, plan)
    trials = run_sweep(whole, plan, InlinePool())
    assert [trial.state for trial in trials] == ["complete"] * 2
    open_sweep(parts, plan)
    for word in (30, 55):  # within the first run, then within the second
        process = multiprocessing.get_context("fork").Process(target=killed, args=(parts, plan, word))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert [trial.state for trial in read_trials(parts)] == ["complete", "running"]
    metrics = (parts / "trial-000/seed1000/metrics.jsonl").read_bytes()
    assert resume_sweep(parts, InlinePool(), ["cli_envs"]) == trials
    assert (parts / "trials.json").read_bytes() == (whole / "trials.json").read_bytes()
    assert (parts / "trial-000/seed1000/metrics.jsonl").read_bytes() == metrics, "what was complete was trained again"
    for trial in trials:
        assert_same_end(whole / trial.run_name(1000), parts / trial.run_name(1000))


def test_process_that_dies_is_said_and_the_trial_goes_on(tmp_path, monkeypatch):
    class Dying(InlinePool):
        def hire(self, perform, heeds_stop):
            worker = super().hire(perform, heeds_stop)
            worker.events.append(("died", "its process was killed"))
            return worker

    rows = []
    plan = small_plan(trials=1)
    open_sweep(tmp_path / "sweep", plan)
    (trial,) = run_sweep(tmp_path / "sweep", plan, Dying(), lambda name, row: rows.append((name, row)))
    assert trial.state == "failed", "each of two processes died"
    assert [row["message"] for _, row in rows if row["kind"] == "warning" and row["topic"] == "died"] == [
        "its process was killed; it resumes from its checkpoint"
    ]


def test_sweep_in_python_is_the_one_of_the_command_and_the_same_call_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "LocalPool", lambda jobs: InlinePool())
    settings = TINY | {"steps": 120}
    arguments = {"space": SPACE, "folder": tmp_path / "sweep", **settings}
    (trial,) = sweep("cli_envs:Line-v0", trials=1, **arguments)
    assert isinstance(trial, Trial)
    shutil.rmtree(tmp_path / "sweep" / "trial-000")
    trials = sweep("cli_envs:Line-v0", trials=2, **arguments)
    assert trials[0] == trial
    assert not (tmp_path / "sweep" / "trial-000").exists(), "trained again"
    assert read_sweep(tmp_path / "sweep", ["cli_envs"]).trials == 2


def test_one_process_at_a_time(tmp_path):
    plan = small_plan(trials=1)
    open_sweep(tmp_path / "sweep", plan)
    with locked(tmp_path / "sweep"), pytest.raises(CheckpointError, match="another process"):
        run_sweep(tmp_path / "sweep", plan, InlinePool())
