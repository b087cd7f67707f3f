"""Figure 9: one line for each run, in the panel of its algorithm; the controllers above the ground state."""

import pytest

from cdqn.experiments.cooling import figure as module
from cdqn.report.reproduction import Point, Reproduction
from cdqn.tasks.oscillator import ground_state_energy


@pytest.fixture
def drawn(monkeypatch):
    figures = []
    monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))
    return figures


def test_each_run_is_a_line_in_the_panel_of_its_algorithm(drawn):
    rows = [
        Point(name, f"seed {seed}", 100 * test, "energy", 0.8 + seed + test, 0.1)
        for name, seeds in (("cdqn", (0, 1, 2)), ("dqn", (0, 1)))
        for seed in seeds
        for test in (1, 2)
    ]
    rows.append(Point("cdqn", "seed 0", 200, "final_energy", 99.0, 0.1))
    module.draw_fig9(Reproduction("fig9", "2 runs", rows, []), "any.png")
    left, right = drawn[0].axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("C-DQN", "DQN")
    curves = {line.get_label(): list(line.get_ydata()) for line in left.get_lines() if len(line.get_xdata()) == 2}
    assert curves["seed 1"] == pytest.approx([2.8 - ground_state_energy(), 3.8 - ground_state_energy()])
    labels = [text.get_text() for axes in (left, right) for text in axes.get_legend().get_texts()]
    assert labels == ["seed 0", "seed 1", "seed 2", "seed 0", "seed 1"]
    assert left.get_xlabel() == "simulated time of training"


def test_controllers_are_shown_with_their_numbers(drawn):
    rows = [Point("lqg", "3 episodes", 0, "energy", 0.75, 0.01), Point("none", "3 episodes", 0, "energy", 5.0, 0.2)]
    module.draw_controllers(Reproduction("controllers", "about", rows, []), "any.png")
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["none", "lqg"]
    assert [text.get_text() for text in axes.texts] == ["5.0000 ± 0.2000", "0.7500 ± 0.0100"]
