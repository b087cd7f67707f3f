"""The runs of figures 1, 2 and 3: in small what the paper says of them, and how learning times are read off."""

import numpy as np
import pytest

from cdqn.experiments.section3 import runs as module
from cdqn.experiments.section3.runs import DISTANCE, MIN_Q, MSBE, RETURN, Curves, OnlineTask, PairTask
from cdqn.report.authors import authors_curves
from cdqn.tabular import LABELS


def run(task, runs: int = 4) -> Curves:
    return module.run_all([task], runs, seed=(7, 7), jobs=1)[0]


def time(curves: Curves, quantity: str = MSBE) -> float:
    return module.learning_time(curves, quantity, np.random.default_rng(0)).step


@pytest.fixture(scope="module")
def small() -> dict[str, Curves]:
    """Width 10, γ = 0.9, as many runs as the paper's."""
    budgets = {"q_table": 10_000, "rg": 400_000, "cdqn": 40_000}
    return {name: run(PairTask(name, 10, 0.9, updates), runs=10) for name, updates in budgets.items()}


@pytest.mark.parametrize("algorithm", ["q_table", "rg"])
@pytest.mark.parametrize(("quantity", "series"), [(MSBE, "MSBE"), (DISTANCE, "dist2")])
def test_learning_times_are_the_authors(small, algorithm, quantity, series):
    x, y = authors_curves("fig1_cliff_walking")["gamma0.9_width10_curves", f"{series}_{LABELS[algorithm]}"]
    authors = module.first_below(x, y[None])[0]
    assert time(small[algorithm], quantity) == pytest.approx(authors, rel=0.2)


def test_rg_is_farther_from_the_optimum_at_the_same_msbe(small):
    at = {name: int(np.argmax(small[name].step_R == time(small[name]))) for name in ("q_table", "rg")}
    distance = {name: small[name].values[DISTANCE].mean(0)[at[name]] for name in at}
    assert distance["rg"] > 3 * distance["q_table"]


def test_cdqn_learns_far_faster_than_rg(small):
    assert time(small["q_table"]) < time(small["cdqn"]) < 0.1 * time(small["rg"])


def test_a_doubled_system_takes_q_table_learning_four_times_as_long(small):
    doubled = run(PairTask("q_table", 20, 0.95, 30_000))
    assert time(doubled) / time(small["q_table"]) == pytest.approx(4, rel=0.35)


def test_q_table_learning_does_not_mind_the_discount(small):
    undiscounted = run(PairTask("q_table", 10, 1.0, 10_000), runs=10)
    assert time(undiscounted) == pytest.approx(time(small["q_table"]), rel=0.35)


def test_rg_takes_longer_as_the_discount_nears_1_and_does_not_learn_at_1(small):
    longer = run(PairTask("rg", 10, 0.95, 1_500_000), runs=3)
    assert 1.5 < time(longer) / time(small["rg"]) < 4
    never = run(PairTask("rg", 10, 1.0, 1_000_000), runs=2)
    assert never.values[MSBE][:, -1].min() > 5


def test_online_rg_needs_exploration_and_q_table_learning_does_not():
    ends = {
        (name, epsilon): run(OnlineTask(name, epsilon, 10_000), runs=40)
        for name, epsilon in (("q_table", 0.0), ("rg", 0.0), ("rg", 0.1))
    }
    assert ends["q_table", 0.0].at_end(RETURN) == (14, 0)
    assert ends["rg", 0.1].at_end(RETURN) == (14, 0)
    stuck, stderr = ends["rg", 0.0].at_end(RETURN)
    assert stuck == pytest.approx(5.85, abs=4 * stderr)
    assert stderr < 1
    assert ends["rg", 0.1].at_end(MIN_Q)[0] == pytest.approx(-1, abs=0.01)
    assert ends["rg", 0.0].at_end(MIN_Q)[0] == pytest.approx(-1.69, abs=0.2)


def test_records_are_where_the_authors_made_them():
    """The first integer at or past each 10^(k/200); their published curves have no other steps."""
    step_R = module.record_steps(400_000)
    assert {1, 10, 100, 1000, 3590, 100_000, 199_527} <= set(step_R.tolist())
    for series in ("MSBE_Q-table", "MSBE_RG"):
        x, _ = authors_curves("fig1_cliff_walking")["gamma0.9_width10_curves", series]
        assert np.isin(x, step_R).all()
    assert step_R[-1] <= 400_000 < module.record_steps(500_000)[-1]
    assert module.record_steps(10_000_000)[-1] == 10_000_000


def test_a_learning_time_is_that_of_the_mean_over_runs_and_not_the_mean_of_times():
    step_R = np.array([1, 2, 3, 4])
    curves = Curves(step_R, {MSBE: np.array([[9.0, 0.1, 0.1, 0.0], [9.0, 9.0, 1.8, 0.1]])})
    result = module.learning_time(curves, MSBE, np.random.default_rng(0))
    assert result.step == 3
    assert set(result.resampled_B) == {2, 3, 4}  # the first run twice, one of each, the second twice
    assert result.stderr == pytest.approx(np.sqrt(0.5), rel=0.1)


def test_a_level_that_is_not_reached_has_no_time():
    curves = Curves(np.array([1, 2]), {MSBE: np.array([[9.0, 3.0], [9.0, 0.0]])})
    assert np.isnan(module.learning_time(curves, MSBE, np.random.default_rng(0)).step)


def test_runs_do_not_depend_on_the_number_of_threads_nor_on_their_number():
    tasks = [PairTask("rg", 10, 0.9, 2_000), OnlineTask("rg", 0.1, 2_000)]
    told: list[tuple[int, int]] = []
    alone = module.run_all(tasks, 2, (0, 1), jobs=1, on_progress=lambda *progress: told.append(progress))
    threads = module.run_all(tasks, 3, (0, 1), jobs=3)
    for one, other in zip(alone, threads, strict=True):
        for quantity, value_SR in one.values.items():
            np.testing.assert_array_equal(value_SR, other.values[quantity][:2])
    assert told[-1] == (8_000, 8_000)
    assert not np.array_equal(alone[0].values[MSBE][0], alone[0].values[MSBE][1])
    assert not np.array_equal(alone[0].values[MSBE], module.run_all(tasks, 2, (1, 1), jobs=1)[0].values[MSBE])


def test_what_is_learned_online_does_not_depend_on_how_often_it_is_looked_at(monkeypatch):
    task = OnlineTask("rg", 0.1, 1_000)
    often = module.run_online(task, np.random.default_rng(0))[MIN_Q][-1]
    monkeypatch.setattr(module, "record_steps", lambda updates: np.array([updates]))
    assert module.run_online(task, np.random.default_rng(0))[MIN_Q][-1] == often
