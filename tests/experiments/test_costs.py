"""What a figure costs, from measurements that are replaced here, and once really made."""

import pytest
import torch

from cdqn.experiments import costs, reproduce


@pytest.fixture
def measured(monkeypatch):
    """A machine on which each step of anything takes a hundredth of a second."""
    monkeypatch.setattr(costs, "_seconds_per_table_update", lambda: 0.01)
    monkeypatch.setattr(costs, "_seconds_per_fitted_update", lambda batch_size, hidden: 0.01)
    monkeypatch.setattr(costs, "_measure_steps", lambda *_: 0.01)
    monkeypatch.setattr(costs, "_seconds", lambda work: 0.01)
    monkeypatch.setattr(costs, "_step_seconds", {})


@pytest.mark.parametrize("name", reproduce.FIGURES)
def test_larger_scales_cost_more(name, measured):
    smoke, laptop, paper = (reproduce.cost(name, scale) for scale in ("smoke", "laptop", "paper"))
    assert 0 < smoke.core_hours <= laptop.core_hours <= paper.core_hours
    assert 0 < smoke.steps <= laptop.steps <= paper.steps
    assert smoke.runs > 0


def test_paper_scale_of_figure_4_is_300_million_steps(measured):
    cost = reproduce.cost("fig4", "paper")
    assert (cost.runs, cost.steps) == (6, 300_000_000)
    assert cost.core_hours == pytest.approx(300e6 * 0.01 / 3600)
    assert 0.5e9 < cost.memory_bytes < 3e9


def test_figure_8_is_counted_in_epochs(measured):
    cost = reproduce.cost("fig8", "paper")
    assert (cost.runs, cost.steps) == (30, 60_000)  # 10 repeats of three algorithms, 2000 epochs
    assert cost.core_hours == pytest.approx(60_000 * 100 * 0.01 / 3600)  # of 100 batches


def test_a_measurement_is_made_once_for_each_kind_of_work(monkeypatch):
    made = []
    monkeypatch.setattr(costs, "_measure_steps", lambda env_id, *_: made.append(env_id) or 0.01)
    monkeypatch.setattr(costs, "_step_seconds", {})
    for name in ("fig4", "fig5", "fig6", "fig11"):
        costs.of_games(name, "laptop")
    assert len(made) == 1


def test_steps_of_a_game_are_really_measured():
    from cdqn.experiments.games.plans import FIGURES

    for name in ("fig5", "fig7"):  # the second finds γ automatically, for which a measurement has no time
        line = FIGURES[name].lines("smoke")[0]
        assert 1e-6 < costs._measure_steps(line.env_id, line.config(0), line.preset) < 1
    assert 1e-10 < costs._seconds_per_table_update() < 1e-3
    assert 1e-7 < costs._seconds_per_fitted_update(50, (8, 8)) < 1


def test_a_measurement_is_of_one_thread_and_leaves_their_number_as_it_was():
    torch.set_num_threads(2)
    seen = []
    costs._seconds(lambda: seen.append(torch.get_num_threads()))
    assert (seen, torch.get_num_threads()) == ([1], 2)


def test_an_update_of_figure_8_is_measured_without_what_surrounds_it(monkeypatch):
    """Data are made and policies evaluated once in hundreds of updates: in a short measurement they would prevail."""
    from cdqn.experiments.wet_chicken import runs

    measuring = []
    seconds = costs._seconds

    def noticed(work):
        measuring.append(True)
        try:
            return seconds(work)
        finally:
            measuring.pop()

    def make_data(*arguments, made=runs.make_data):
        assert not measuring
        return made(*arguments)

    monkeypatch.setattr(costs, "_seconds", noticed)
    monkeypatch.setattr(runs, "make_data", make_data)
    monkeypatch.setattr(runs, "_record", lambda *_: pytest.fail("a policy is evaluated"))
    assert costs._seconds_per_fitted_update(40, (8,)) > 0
