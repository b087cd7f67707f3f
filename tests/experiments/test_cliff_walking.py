"""Figures 1, 2 and 3: smaller versions of what the paper says of them, and how learning times are read off."""

import numpy as np
import pytest

from cdqn.experiments import cliff_runs
from cdqn.experiments.cliff_runs import DISTANCE, MIN_Q, MSBE, RETURN, Curves, OnlineTask, PairTask
from cdqn.experiments.cliff_walking import fig1, fig1_claims, fig2, fig2_claims, fig3, fig3_claims
from cdqn.experiments.request import Request
from cdqn.report.authors import authors_curves


def run(task, runs: int = 4) -> Curves:
    return cliff_runs.run_all([task], runs, seed=(7, 7), jobs=1)[0]


def time(curves: Curves, quantity: str = MSBE) -> float:
    return cliff_runs.learning_time(curves, quantity, np.random.default_rng(0)).step


@pytest.fixture(scope="module")
def small() -> dict[str, Curves]:
    """Width 10, γ = 0.9, as many runs as the paper's."""
    budgets = {"Q-table": 10_000, "RG": 400_000, "C-DQN": 40_000}
    return {name: run(PairTask(name, 10, 0.9, updates), runs=10) for name, updates in budgets.items()}


@pytest.mark.parametrize("algorithm", ["Q-table", "RG"])
@pytest.mark.parametrize(("quantity", "series"), [(MSBE, "MSBE"), (DISTANCE, "dist2")])
def test_learning_times_are_the_authors(small, algorithm, quantity, series):
    x, y = authors_curves("fig1_cliff_walking")["gamma0.9_width10_curves", f"{series}_{algorithm}"]
    authors = cliff_runs.first_below(x, y[None])[0]
    assert time(small[algorithm], quantity) == pytest.approx(authors, rel=0.2)


def test_rg_is_farther_from_the_optimum_at_the_same_msbe(small):
    at = {name: int(np.argmax(small[name].step_R == time(small[name]))) for name in ("Q-table", "RG")}
    distance = {name: small[name].values[DISTANCE].mean(0)[at[name]] for name in at}
    assert distance["RG"] > 3 * distance["Q-table"]


def test_cdqn_learns_far_faster_than_rg(small):
    assert time(small["Q-table"]) < time(small["C-DQN"]) < 0.1 * time(small["RG"])


def test_a_doubled_system_takes_q_table_learning_four_times_as_long(small):
    doubled = run(PairTask("Q-table", 20, 0.95, 30_000))
    assert time(doubled) / time(small["Q-table"]) == pytest.approx(4, rel=0.35)


def test_q_table_learning_does_not_mind_the_discount(small):
    undiscounted = run(PairTask("Q-table", 10, 1.0, 10_000), runs=10)
    assert time(undiscounted) == pytest.approx(time(small["Q-table"]), rel=0.35)


def test_rg_takes_longer_as_the_discount_nears_1_and_does_not_learn_at_1(small):
    longer = run(PairTask("RG", 10, 0.95, 1_500_000), runs=3)
    assert 1.5 < time(longer) / time(small["RG"]) < 4
    never = run(PairTask("RG", 10, 1.0, 1_000_000), runs=2)
    assert never.values[MSBE][:, -1].min() > 5


def test_online_rg_needs_exploration_and_q_table_learning_does_not():
    ends = {
        (name, epsilon): run(OnlineTask(name, epsilon, 10_000), runs=40)
        for name, epsilon in (("Q-table", 0.0), ("RG", 0.0), ("RG", 0.1))
    }
    assert ends["Q-table", 0.0].at_end(RETURN) == (14, 0)
    assert ends["RG", 0.1].at_end(RETURN) == (14, 0)
    stuck, stderr = ends["RG", 0.0].at_end(RETURN)
    assert stuck == pytest.approx(5.85, abs=4 * stderr)
    assert stderr < 1
    assert ends["RG", 0.1].at_end(MIN_Q)[0] == pytest.approx(-1, abs=0.01)
    assert ends["RG", 0.0].at_end(MIN_Q)[0] == pytest.approx(-1.69, abs=0.2)


# Reading numbers off the runs ---------------------------------------------------------------------------


def test_records_are_where_the_authors_made_them():
    """The first integer at or past each 10^(k/200); their published curves have no other steps."""
    step_R = cliff_runs.record_steps(400_000)
    assert {1, 10, 100, 1000, 3590, 100_000, 199_527} <= set(step_R.tolist())
    for series in ("MSBE_Q-table", "MSBE_RG"):
        x, _ = authors_curves("fig1_cliff_walking")["gamma0.9_width10_curves", series]
        assert np.isin(x, step_R).all()
    assert step_R[-1] <= 400_000 < cliff_runs.record_steps(500_000)[-1]
    assert cliff_runs.record_steps(10_000_000)[-1] == 10_000_000


def test_a_learning_time_is_that_of_the_mean_over_runs_and_not_the_mean_of_times():
    step_R = np.array([1, 2, 3, 4])
    curves = Curves(step_R, {MSBE: np.array([[9.0, 0.1, 0.1, 0.0], [9.0, 9.0, 1.8, 0.1]])})
    result = cliff_runs.learning_time(curves, MSBE, np.random.default_rng(0))
    assert result.step == 3
    assert set(result.resampled_B) == {2, 3, 4}  # the first run twice, one of each, the second twice
    assert result.stderr == pytest.approx(np.sqrt(0.5), rel=0.1)


def test_a_level_that_is_not_reached_has_no_time():
    curves = Curves(np.array([1, 2]), {MSBE: np.array([[9.0, 3.0], [9.0, 0.0]])})
    assert np.isnan(cliff_runs.learning_time(curves, MSBE, np.random.default_rng(0)).step)


def test_runs_do_not_depend_on_the_number_of_threads_nor_on_their_number():
    tasks = [PairTask("RG", 10, 0.9, 2_000), OnlineTask("RG", 0.1, 2_000)]
    told: list[tuple[int, int]] = []
    alone = cliff_runs.run_all(tasks, 2, (0, 1), jobs=1, on_progress=lambda *progress: told.append(progress))
    threads = cliff_runs.run_all(tasks, 3, (0, 1), jobs=3)
    for one, other in zip(alone, threads, strict=True):
        for quantity, value_SR in one.values.items():
            np.testing.assert_array_equal(value_SR, other.values[quantity][:2])
    assert told[-1] == (8_000, 8_000)
    assert not np.array_equal(alone[0].values[MSBE][0], alone[0].values[MSBE][1])
    assert not np.array_equal(alone[0].values[MSBE], cliff_runs.run_all(tasks, 2, (1, 1), jobs=1)[0].values[MSBE])


def test_what_is_learned_online_does_not_depend_on_how_often_it_is_looked_at(monkeypatch):
    task = OnlineTask("RG", 0.1, 1_000)
    often = cliff_runs.run_online(task, np.random.default_rng(0))[MIN_Q][-1]
    monkeypatch.setattr(cliff_runs, "record_steps", lambda updates: np.array([updates]))
    assert cliff_runs.run_online(task, np.random.default_rng(0))[MIN_Q][-1] == often


# Claims -------------------------------------------------------------------------------------------------


def falling(step: int, runs: int) -> Curves:
    """Curves that fall below 1 at one step; |Q−Q*|² is then 2."""
    step_R = cliff_runs.record_steps(10_000_000)
    value_R = np.where(step_R < step, 50.0, 0.5)
    return Curves(step_R, {MSBE: np.tile(value_R, (runs, 1)), DISTANCE: np.tile(4 * value_R, (runs, 1))})


def verdicts(claims) -> dict[str, bool | None]:
    return {claim.text: claim.holds for claim in claims}


@pytest.mark.parametrize(
    ("step", "runs", "holds"), [(3590, 10, True), (4073, 10, True), (4266, 10, False), (3590, 9, None)]
)
def test_a_learning_time_is_judged_by_15_percent_and_only_with_the_papers_runs(step, runs, holds):
    times = {("Q-table", 10): step, ("Q-table", 20): 16_000, ("RG", 10): 199_527, ("RG", 20): 3_000_000}
    times |= {("C-DQN", 10): 7_000, ("C-DQN", 20): 20_000}
    claims = fig1_claims({key: falling(n, runs) for key, n in times.items()}, seed=0)
    assert verdicts(claims)["Q-table, width 10: steps to MSBE < 1"] is holds


def test_a_growth_that_is_not_the_papers_is_said_not_to_hold():
    times = {("Q-table", 10): 4_000, ("Q-table", 20): 16_000, ("RG", 10): 200_000, ("RG", 20): 3_200_000}
    times |= {("C-DQN", 10): 7_000, ("C-DQN", 20): 20_000}
    claims = fig1_claims({key: falling(n, 10) for key, n in times.items()}, seed=0)
    judged = verdicts(claims)
    assert judged["Q-table: time to MSBE < 1 on the doubled system"] is True
    assert judged["RG: time to MSBE < 1 on the doubled system"] is False
    found = next(claim.found for claim in claims if claim.text == "RG: time to MSBE < 1 on the doubled system")
    assert found.startswith("16")


def test_the_exponent_is_that_of_one_over_one_minus_gamma():
    curves = {("Q-table", g): falling(4_000, 10) for g in (0.9, 0.99, 1.0)}
    curves |= {("RG", g): falling(round(2_000 / (1 - g) ** 1.5), 10) for g in (0.9, 0.99)}
    curves["RG", 1.0] = falling(10**9, 10)
    claims = fig2_claims(curves, seed=0)
    found = {claim.text: claim.found for claim in claims}
    x = float(found["RG, γ from 0.9 to 0.99: time ∝ (1−γ)^−x"].split()[2])
    assert x == pytest.approx(1.5, abs=0.02)
    assert verdicts(claims)["Q-table: roughly the same time for all γ"] is True
    assert verdicts(claims)["RG, γ = 1: not converged after 10,000,000 steps"] is True
    curves["Q-table", 1.0], curves["RG", 1.0] = falling(6_000, 10), falling(9_000_000, 10)
    judged = verdicts(fig2_claims(curves, seed=0))
    assert judged["Q-table: roughly the same time for all γ"] is False
    assert judged["RG, γ = 1: not converged after 10,000,000 steps"] is False


def test_the_ends_of_figure_3_are_judged_beside_the_authors():
    rng = np.random.default_rng(0)
    step_R = cliff_runs.record_steps(100_000)

    def ends(returns: float, least: float, trials: int = 100) -> Curves:
        noise_S1 = rng.normal(size=(trials, 1)) * 0.1
        shape = np.ones(step_R.size)
        return Curves(step_R, {RETURN: (returns + noise_S1) * shape, MIN_Q: (least + noise_S1) * shape})

    published = {
        ("Q-table", 0.0): (14, -0.485),
        ("RG", 0.0): (5.85, -1.69),
        ("RG", 0.01): (14, -1),
        ("RG", 0.1): (14, -1),
    }
    assert set(verdicts(fig3_claims({k: ends(*v) for k, v in published.items()})).values()) == {True}
    assert set(verdicts(fig3_claims({k: ends(*v, trials=50) for k, v in published.items()})).values()) == {None}
    off = verdicts(fig3_claims({k: ends(*v) for k, v in (published | {("RG", 0.0): (7, -1.69)}).items()}))
    assert [text for text, holds in off.items() if not holds] == ["RG, ε = 0: greedy return after 100,000 steps"]


@pytest.mark.parametrize(
    ("figure", "name", "series"),
    [
        (
            fig1,
            "fig1",
            {(a, f"width {w}", q) for a in ("Q-table", "RG", "C-DQN") for w in (10, 20) for q in (MSBE, DISTANCE)},
        ),
        (fig2, "fig2", {(a, f"gamma {g}", MSBE) for a in ("Q-table", "RG") for g in ("0.9", "0.95", "1")}),
        (
            fig3,
            "fig3",
            {
                (a, f"epsilon {e}", q)
                for a, e in (("Q-table", "0"), ("RG", "0"), ("RG", "0.01"), ("RG", "0.1"))
                for q in (RETURN, MIN_Q)
            },
        ),
    ],
)
def test_a_smoke_run_has_every_curve_of_its_figure(figure, name, series):
    told: list[tuple[int, int]] = []
    result = figure(Request("smoke", seed=3, jobs=2, on_progress=lambda *progress: told.append(progress)))
    assert result.name == name
    assert {(row.algorithm, row.setting, row.quantity) for row in result.rows} == series
    assert "seed 3, scale smoke" in result.about
    assert told[-1][0] == told[-1][1]
    assert not any(np.isnan(row.value) or np.isnan(row.stderr) for row in result.rows)


def test_fewer_runs_are_the_first_ones_of_the_scale():
    whole, first = fig1(Request("smoke", runs=2)), fig1(Request("smoke", runs=1))
    assert "mean of 1 run, seed 0" in first.about
    assert np.isnan(first.rows[0].stderr)
    assert fig1(Request("smoke")).rows == whole.rows
    assert whole.rows != first.rows
