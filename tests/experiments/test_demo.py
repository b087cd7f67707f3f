"""The demo at a small scale, and once as it is."""

import csv
import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from cdqn.errors import CdqnError, ConfigError
from cdqn.experiments.demo import DemoResult, DemoRun, Setting, run_demo
from cdqn.experiments.offline import History, train_offline
from cdqn.report.demo import COLUMNS, demo_table, render_demo, write_demo

SMALL = Setting(transitions=200, updates=60, record_every=20, evaluate_every=30, evaluation_episodes=2)


@pytest.fixture(scope="module")
def small() -> DemoResult:
    return run_demo(2, jobs=1, setting=SMALL)


def history(*q: float) -> History:
    update_T = np.arange(1, len(q) + 1)
    q_T = np.array(q, dtype=np.float64)
    return History(update_T, q_T**2, q_T, np.ones(len(q)), update_T, np.full(len(q), 9.0))


def result_of(**q_by_algorithm: list[float]) -> DemoResult:
    runs = [DemoRun(name, 100, "", history(*q)) for name, q in q_by_algorithm.items()]
    return DemoResult(Setting(), tuple(runs), 1.0)


def test_all_algorithms_of_a_seed_see_the_same_data_and_no_two_seeds_do(small):
    digests = {seed: {run.data_digest for run in small.runs if run.seed == seed} for seed in small.seeds}
    assert [len(of_seed) for of_seed in digests.values()] == [1, 1]
    assert len(set.union(*digests.values())) == 2


def test_all_algorithms_of_a_seed_start_from_the_same_weights(small):
    for seed in small.seeds:
        assert len({run.history.return_E[0] for run in small.runs if run.seed == seed}) == 1


def test_algorithms_differ_in_nothing_but_the_loss():
    cdqn, dqn, rg = (SMALL.config(name, 7).to_json() for name in ("cdqn", "dqn", "rg"))
    assert {name for name in cdqn if cdqn[name] != dqn[name]} == {"algorithm"}
    assert {name for name in cdqn if cdqn[name] != rg[name]} == {"algorithm", "double_q", "target_period_updates"}


@pytest.mark.slow
def test_result_does_not_depend_on_jobs_and_progress_reaches_the_end(small):
    told = []
    parallel = run_demo(2, jobs=2, on_progress=lambda *progress: told.append(progress), setting=SMALL)
    assert told[-1] == (360, 360)
    assert told == sorted(told)
    for here, there in zip(small.runs, parallel.runs, strict=True):
        assert (here.algorithm, here.seed, here.data_digest) == (there.algorithm, there.seed, there.data_digest)
        for field in dataclasses.fields(History):
            np.testing.assert_array_equal(getattr(here.history, field.name), getattr(there.history, field.name))


def test_error_in_a_worker_names_the_run():
    with pytest.raises(CdqnError, match=r"seed 100 failed.*no environment 'CartPool-v1'"):
        run_demo(1, jobs=1, setting=dataclasses.replace(SMALL, env_id="CartPool-v1"))


@pytest.mark.parametrize(("seeds", "jobs"), [(0, 1), (1, 0)])
def test_no_seeds_or_jobs_are_refused(seeds, jobs):
    with pytest.raises(ConfigError, match="at least 1"):
        run_demo(seeds, jobs)


def test_q_beyond_one_and_a_half_bounds_at_any_record_counts_as_diverged():
    """Also if it came back, if it is negative, or if it became NaN."""
    for q, diverged in [([1, 149], 0), ([1, 151, 3], 1), ([-151.0], 1), ([1, np.nan], 1), ([1, np.inf], 1)]:
        result = result_of(dqn=q)
        assert [row.diverged_seeds for row in demo_table(result)] == [diverged], q
        assert result.diverged(result.runs[0]) == bool(diverged)


def test_table_shows_median_least_and_most():
    runs = [DemoRun("dqn", seed, "", history(q)) for seed, q in [(100, 5e5), (101, 4e5), (102, 7e5)]]
    runs.append(DemoRun("cdqn", 100, "", history(33.3)))
    result = DemoResult(Setting(), tuple(runs), 1.0)
    console = Console(width=80, file=io.StringIO())
    console.print(render_demo(result))
    lines = [line.split() for line in console.file.getvalue().splitlines() if line.strip()]
    at = [line[0] for line in lines].index("DQN")
    assert lines[at] == ["DQN", "2.5e11", "5.0e5", "9.00", "3/3"]
    assert " ".join(lines[at + 1]) == "[1.6e11 … 4.9e11] [4.0e5 … 7.0e5] [9.00 … 9.00]"
    assert lines[at - 2] == ["C-DQN", "1109", "33.3", "9.00", "0/1"]


def test_picture_and_csv_are_written_in_full(small, tmp_path):
    picture, numbers = write_demo(small, tmp_path / "new" / "folder")
    assert picture.read_bytes().startswith(b"\x89PNG")
    with numbers.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    # 6 runs with 3 records of loss and Q and 3 evaluations; the share of DQN's branch for C-DQN's 2 runs
    assert len(rows) == 6 * 3 * 3 + 2 * 3
    (value,) = [row[5] for row in rows if row[:5] == ["dqn", "CartPole-v1", "101", "60", "q"]]
    run = small.of("dqn")[1]
    assert float(value) == pytest.approx(run.history.q_T[-1], rel=1e-5)


@pytest.mark.slow
def test_dqn_exceeds_the_bound_tenfold_and_cdqn_stays_within_it():
    result = run_demo(1, jobs=2)
    (cdqn,), (dqn,), (rg,) = (result.of(name) for name in ("cdqn", "dqn", "rg"))
    assert dqn.history.q_T[-1] > 10 * result.setting.bound
    assert cdqn.history.largest_q < 1.5 * result.setting.bound
    assert [result.diverged(run) for run in (cdqn, dqn, rg)] == [False, True, False]
    assert dqn.history.loss_T[-1] > 1e6 * cdqn.history.loss_T[-1]


@pytest.mark.slow
def test_compiled_training_of_one_algorithm_after_another_is_that_of_the_eager_one():
    """Compiled updates once ran the program of the first learner of the process for every later one."""
    from cdqn.experiments.offline import collect_random

    data = collect_random("CartPole-v1", 200, seed=0)
    for algorithm in ("cdqn", "dqn", "rg"):
        losses = []
        for backend in ("off", "on"):
            config = dataclasses.replace(SMALL.config(algorithm, 0), compile=backend)
            record = train_offline(data, config, 40, record_every=40, evaluate_every=40, evaluation_episodes=1)
            losses.append(record.loss_T[-1])
        assert losses[1] == pytest.approx(losses[0], rel=1e-3), algorithm
