"""Numbers that are read off the runs of a figure."""

import numpy as np
import pytest
from game_runs import make_results, make_run

from cdqn.experiments.games.results import Result, find, games_of, rows


@pytest.fixture
def results():
    return make_results("fig5", lambda line: (10.0, 0.5) if line.algorithm == "cdqn" else (2.0, 1e4))


def test_final_numbers_are_of_the_last_tenth(results):
    ours = find(results, "cdqn")
    expected = np.linspace(0, 10, 40)[-4:].mean()
    assert ours.returns()[0] == pytest.approx(expected, rel=0.01)
    assert ours.gains()[0] == pytest.approx(expected - np.linspace(0, 10, 40)[:4].mean(), rel=0.01)


def test_losses_are_averaged_as_powers_of_ten():
    """One spike does not make a loss large."""
    losses = np.full(40, 1e-2)
    losses[-1] = 1e2
    result = Result(None, {0: make_run(np.zeros(40), losses)})
    assert result.losses()[0] == pytest.approx(10 ** (-2 + 4 / 4), rel=0.3)


def test_growth_is_beside_the_first_third(results):
    dqn = find(results, "dqn")
    assert (dqn.growths() > 100).all()
    assert (find(results, "cdqn").growths() < 1).all()


def test_what_a_run_said_of_itself_is_counted():
    result = Result(None, {0: make_run([0, 1], [1, 1], "training is diverging"), 1: make_run([0, 1], [1, 1])})
    assert result.diverged() == 1


def test_fluctuations_are_of_the_last_third():
    quiet, loud = np.zeros(60), np.zeros(60)
    loud[40:] = np.tile([0.0, 4.0], 10)
    result = Result(None, {0: make_run(quiet, np.ones(60)), 1: make_run(loud, np.ones(60))})
    assert result.fluctuations()[0] == 0
    assert result.fluctuations()[1] == pytest.approx(2.0, rel=0.05)


def test_one_curve_is_found_or_it_is_an_error():
    results = make_results("fig6", lambda line: (1.0, 1.0))
    assert find(results, "dqn", variant="small fifo").line.settings["memory_size"] == 1_000
    with pytest.raises(ValueError, match="too many values"):
        find(results, "dqn")
    assert games_of(results) == ["SpaceInvaders"]


def test_data_are_means_over_runs_with_their_errors(results):
    points = [row for row in rows(results) if (row.algorithm, row.quantity) == ("cdqn", "return")]
    assert len(points) == 40
    assert points[-1].value == pytest.approx(10.01)
    assert points[-1].stderr == pytest.approx(np.std([10.0, 10.01, 10.02], ddof=1) / np.sqrt(3))
    assert {row.setting for row in rows(results)} == {"SpaceInvaders"}
    assert [row.value for row in rows(results) if row.quantity == "q_over_bound"] == pytest.approx([0.2] * 80)
