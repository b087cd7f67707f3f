"""Run folders as runs leave them: complete, killed, diverged, damaged."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cdqn import report
from cdqn.errors import CheckpointError
from cdqn.report.runs import find_runs, read_run
from drawing_imports import assert_draws_only


def test_rows_become_arrays_by_kind(tmp_path, make):
    rows = [make.progress(100, loss=None), make.episode(120, 33.0), make.progress(200, loss=0.25)]
    rows.append(make.evaluation(200, [1.0, 3.0]))
    run = read_run(make.write(tmp_path / "run", rows, algorithm="rg", seed=7))
    assert (run.env_id, run.algorithm, run.seed) == ("CartPole-v1", "rg", 7)
    np.testing.assert_array_equal(run.curve("loss"), [[200], [0.25]])  # null is left out
    np.testing.assert_array_equal(run.episodes(), [[120], [33]])
    np.testing.assert_array_equal(run.evaluations(), [[200], [2]])
    np.testing.assert_array_equal(run.q_over_bound(), [[100, 200], [0.34, 0.34]])
    assert run.final_evaluation is not None
    assert run.final_evaluation["returns"] == [1.0, 3.0]
    assert not run.diverged


@pytest.mark.parametrize("tail", ['{"kind": "progress", "st', "{", '{"kind": "progress", "step": 20, "loss": "\xff'])
def test_last_line_cut_by_a_kill_is_left_out(tmp_path, make, tail):
    run = read_run(make.write(tmp_path / "run", [make.progress(10)], tail=tail))
    assert run.curve("loss")[0].tolist() == [10]


def test_complete_last_line_without_newline_is_kept(tmp_path, make):
    run = read_run(make.write(tmp_path / "run", [make.progress(10)], tail=json.dumps(make.progress(20))))
    assert run.curve("loss")[0].tolist() == [10, 20]


@pytest.mark.parametrize(
    "damage", ["{]", "[1, 2]", '{"step": 3}', '{"kind": "progress"}', '{"kind": "x", "step": "3"}']
)
def test_damage_anywhere_else_names_file_and_line(tmp_path, make, damage):
    text = damage + "\n" + json.dumps(make.progress(20)) + "\n"
    folder = make.write(tmp_path / "run", [make.progress(10)], tail=text)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl, line 2 is damaged"):
        read_run(folder)


def test_damaged_last_line_with_its_newline_is_not_a_kill(tmp_path, make):
    folder = make.write(tmp_path / "run", [make.progress(10)], tail="{]\n")
    with pytest.raises(CheckpointError, match="line 2"):
        read_run(folder)


def test_nan_and_infinity_are_read_and_mean_divergence(tmp_path, make):
    rows = [make.progress(10, loss=math.inf), make.progress(20, loss=math.nan, q_mean=-math.inf)]
    run = read_run(make.write(tmp_path / "run", rows))
    np.testing.assert_array_equal(run.curve("loss")[1], [math.inf, math.nan])
    np.testing.assert_array_equal(run.q_over_bound()[1], [0.34, -math.inf])
    assert run.diverged


def test_divergence_is_read_from_warnings_but_other_warnings_are_not_divergence(tmp_path, make):
    def warned(name, message):
        return read_run(make.write(tmp_path / name, [{"kind": "warning", "step": 5, "message": message}]))

    assert warned("a", "Q is 12 times its bound: training is diverging").diverged
    assert not warned("b", "the replay is smaller than a batch").diverged


def test_steps_logged_again_after_a_resume_count_once(tmp_path, make):
    """A run killed at step 40 that goes on from its checkpoint at 20 logs 30 and 40 a second time."""
    steps = (10, 20, 30, 40, 30, 40, 50)
    rows = [make.progress(step, loss=float(index)) for index, step in enumerate(steps)]
    step_T, loss_T = read_run(make.write(tmp_path / "run", rows)).curve("loss")
    assert step_T.tolist() == [10, 20, 30, 40, 50]
    assert loss_T.tolist() == [0, 1, 4, 5, 6]


def test_episodes_that_end_at_the_same_step_are_all_kept(tmp_path, make):
    rows = [make.episode(10, 1.0), make.episode(10, 2.0), make.episode(12, 3.0)]
    assert read_run(make.write(tmp_path / "run", rows)).episodes()[1].tolist() == [1, 2, 3]


def test_missing_bound_and_zero_bound_give_no_ratio(tmp_path, make):
    rows = [make.progress(10, q_bound=None), make.progress(20, q_bound=0.0), make.progress(30, q_mean=50.0)]
    np.testing.assert_array_equal(read_run(make.write(tmp_path / "run", rows)).q_over_bound(), [[30], [0.5]])


def test_run_without_rows_has_empty_curves(tmp_path, make):
    folder = make.write(tmp_path / "run", [])
    (folder / "metrics.jsonl").unlink()
    run = read_run(folder)
    assert run.curve("loss")[0].size == 0
    assert run.q_over_bound()[0].size == 0
    assert run.final_evaluation is None
    assert not run.diverged


def test_unknown_quantity_and_text_for_a_number_are_named(tmp_path, make):
    run = read_run(make.write(tmp_path / "run", [make.progress(10, loss="high")]))
    with pytest.raises(CheckpointError, match=r"'losss'.*q_bound"):
        run.curve("losss")
    with pytest.raises(CheckpointError, match="step 10 has loss = 'high'"):
        run.curve("loss")


def test_runs_are_found_in_house_order_and_seeds_as_numbers(tmp_path, make):
    for algorithm, seed in (("rg", 0), ("dqn", 10), ("dqn", 2), ("cdqn", 1)):
        make.write(tmp_path / f"{algorithm}-seed{seed}", [], algorithm, seed)
    (tmp_path / "notes").mkdir()
    found = [(run.algorithm, run.seed) for run in find_runs(tmp_path)]
    assert found == [("cdqn", 1), ("dqn", 2), ("dqn", 10), ("rg", 0)]
    assert len(find_runs(tmp_path / "rg-seed0")) == 1


def test_folder_without_runs_says_what_to_give(tmp_path):
    with pytest.raises(CheckpointError, match=r"no runs in .*config\.json.*give the folder"):
        find_runs(tmp_path)
    with pytest.raises(CheckpointError, match="not a folder"):
        find_runs(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="not a run folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"model_type": "other"}',
        '{"config": {"env_id": "a", "algorithm": "sac", "seed": 0}}',
        '{"config": {"env_id": "a", "algorithm": "dqn", "seed": null}}',
    ],
)
def test_foreign_config_is_refused_by_name(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_run(tmp_path)


def test_final_return_is_that_of_a_run_that_has_come_to_its_end(tmp_path, make):
    """The budget is 1000 steps: what was evaluated on the way is no final performance."""
    rows = [make.evaluation(500, [1.0]), make.evaluation(1000, [2.0, 4.0])]
    assert read_run(make.write(tmp_path / "a", rows)).final_return == 3
    assert read_run(make.write(tmp_path / "b", rows[:1])).final_return is None
    assert read_run(make.write(tmp_path / "c", [])).final_return is None


def test_report_imports_nothing_that_trains():
    for source in Path(report.__file__).parent.glob("*.py"):
        assert_draws_only(source)
