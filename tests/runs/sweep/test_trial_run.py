"""One run of a trial: given up where others were better, and then it stays so."""

import json

from cdqn.runs import run_pool
from cdqn.runs.run_pool import PlannedRun
from cdqn.runs.stopping import Stop
from cdqn.runs.sweep.trial_run import TrialTask, evaluations_of, train_trial_run
from cdqn.runs.sweep.trials import Trial
from cdqn.storage.checkpoint import newest_step
from run_files import assert_same_end, without_clock
from small_sweep import small_plan

NEVER = [None, None, None, None]
AT_180 = [None, None, 1e9, None]


def train(folder, name="trial-001/seed1000", limits=NEVER, stop=None):
    plan = small_plan()
    folder.mkdir(exist_ok=True)
    planned = PlannedRun(plan.env_id, plan.config_of(Trial(1, {"n_step": 2}), 1000))
    rows = []
    end = train_trial_run(TrialTask(folder, name, planned, limits), rows.append, stop or Stop())
    return end, rows


def test_complete_run_returns_its_evaluations_also_when_it_is_asked_again(tmp_path):
    end, rows = train(tmp_path)
    assert (end.finished, end.pruned) == (True, False)
    assert [step for step, _ in end.evaluations] == [60, 120, 180, 240, 300]
    assert [(row["step"], row["mean"]) for row in rows if row["kind"] == "evaluation"] == end.evaluations
    again, rows = train(tmp_path)
    assert again == end
    assert rows == [], "it was trained again"


def test_pruned_run_says_so_keeps_its_folder_and_stays_pruned(tmp_path):
    end, rows = train(tmp_path, limits=AT_180)
    assert (end.finished, end.pruned) == (False, True)
    assert [step for step, _ in end.evaluations] == [60, 120, 180]
    run = tmp_path / "trial-001" / "seed1000"
    warnings = [row for row in without_clock(run) if row["kind"] == "warning" and row["topic"] == "pruned"]
    assert [row["message"].partition(":")[0] for row in warnings] == ["pruned at step 180"]
    assert newest_step(run) == 180
    metrics = (run / "metrics.jsonl").read_bytes()
    again, rows = train(tmp_path, limits=AT_180)  # as after a kill before the end was written down
    assert (again, rows) == (end, [])
    assert (run / "metrics.jsonl").read_bytes() == metrics


def test_stopped_run_goes_on_and_is_judged_by_all_its_evaluations(tmp_path, monkeypatch):
    whole, _ = train(tmp_path / "whole", limits=AT_180)
    stop = Stop()
    real = run_pool._pass_on

    def stopping(tell, event, agent):
        real(tell, event, agent)
        if event.step >= 140:
            stop.request()

    monkeypatch.setattr(run_pool, "_pass_on", stopping)
    end, _ = train(tmp_path / "parts", limits=AT_180, stop=stop)
    assert (end.finished, end.pruned) == (False, False)
    monkeypatch.undo()
    assert train(tmp_path / "parts", limits=AT_180)[0] == whole
    assert_same_end(tmp_path / "whole" / "trial-001/seed1000", tmp_path / "parts" / "trial-001/seed1000")


def test_evaluation_that_is_caught_up_on_can_end_the_run(tmp_path, monkeypatch):
    """Stopped in the middle of the evaluation at step 180: it is done first thing, before any training."""
    stop = Stop()
    real = run_pool._pass_on

    def stopping(tell, event, agent):
        real(tell, event, agent)
        if event.step >= 180 and event.row()["kind"] == "progress":
            stop.request()

    monkeypatch.setattr(run_pool, "_pass_on", stopping)
    end, _ = train(tmp_path, limits=AT_180, stop=stop)
    assert [step for step, _ in end.evaluations] == [60, 120], "the evaluation was not stopped: nothing is tested"
    monkeypatch.undo()
    end, _ = train(tmp_path, limits=AT_180)
    assert end.pruned
    assert [step for step, _ in end.evaluations] == [60, 120, 180]
    assert newest_step(tmp_path / "trial-001/seed1000") < 240


def test_evaluations_after_the_checkpoint_and_lines_cut_off_are_not_there_yet(tmp_path):
    rows = [{"kind": "evaluation", "step": step, "mean": step / 10} for step in (10, 20, 30)]
    lines = [json.dumps(row) for row in [*rows, {"kind": "progress", "step": 5}]]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, "[3]", '{"kind": "evalua']))
    assert evaluations_of(tmp_path, 20) == {10: 1.0, 20: 2.0}
    assert evaluations_of(tmp_path / "elsewhere", 20) == {}
