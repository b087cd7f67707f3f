"""Pictures of games: a column for each, and the authors' beside them."""

import pytest
from game_runs import make_results
from matplotlib.figure import Figure

from cdqn.experiments.games import figure as drawing
from cdqn.experiments.games.plans import FIGURES
from cdqn.experiments.games.results import rows
from cdqn.report.reproduction import Point, Reproduction


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are written, and not written."""
    figures: list[Figure] = []
    monkeypatch.setattr(drawing, "save", lambda figure, path: figures.append(figure))
    return figures


def reproduction_of(name, about="scale laptop, MinAtar's games stand in for Atari's"):
    return Reproduction(name, about, rows(make_results(name, lambda line: (5.0, 0.5))), [])


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "table1"])
def test_every_curve_is_drawn_and_named_once(name, drawn):
    drawing.draw(reproduction_of(name), "x.png")
    (figure,) = drawn
    columns = len(figure.axes) // 2
    ours = {line.game for line in FIGURES[name].lines("laptop")}
    theirs = {line.game for line in drawing.authors_lines(name)}
    assert columns == len(ours) + len(theirs)
    lines = FIGURES[name].lines("laptop")
    for axes in figure.axes[: len(ours)]:
        mine = [line for line in lines if line.game == axes.get_title(loc="left")]
        assert len(axes.lines) == len(mine)
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert len(set(labels)) == len(labels) == len(mine)


def test_authors_are_on_top_of_ours_where_the_game_is_the_same(drawn):
    data = [
        Point("cdqn", "SpaceInvaders", step, quantity, 1.0, 0.1) for step in (1, 2) for quantity in ("return", "loss")
    ]
    drawing.draw(Reproduction("fig5", "scale paper", data, []), "x.png")
    (figure,) = drawn
    assert len(figure.axes) == 2
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["C-DQN", "authors' C-DQN", "authors' DQN"]


def test_panel_without_a_curve_says_so(drawn):
    """The authors' logs of fig. 14 have losses alone."""
    drawing.draw(reproduction_of("fig14"), "x.png")
    (figure,) = drawn
    empty = [axes for axes in figure.axes if not axes.lines]
    assert [text.get_text() for axes in empty for text in axes.texts] == ["not published"]
    assert not any(axes.texts for axes in figure.axes if axes.lines)


def test_variants_of_other_numbers_have_the_line_of_their_rank():
    styles = drawing._styles(["period 500", "period 50", "period 5"], ["period 2000", "period 20", "period 200"])
    assert styles["period 2000"] == styles["period 500"]
    assert styles["period 200"] == styles["period 50"]
    assert styles["period 20"] == styles["period 5"]
    assert drawing._styles(["", "half"], ["other"])["other"] == drawing._styles(["", "half"], [])[""]


def test_losses_are_on_a_logarithmic_axis(drawn):
    drawing.draw(reproduction_of("fig5"), "x.png")
    assert [axes.get_yscale() for axes in drawn[0].axes] == ["linear", "linear", "log", "log"]


def test_table_is_a_panel_for_each_game(drawn):
    data = [Point(name, game, 0, "test_score", 3.0, 0.2) for game in ("a", "b", "c") for name in ("cdqn", "dqn")]
    drawing.draw_table(Reproduction("table1", "here", data, []), "x.png")
    assert [len(axes.patches) for axes in drawn[0].axes] == [2, 2, 2]


def test_published_curves_have_our_names():
    points = drawing.published("fig11")
    assert {(p.algorithm, p.setting) for p in points} == {
        (name, f"SpaceInvaders (Atari), period {period}") for name in ("cdqn", "dqn") for period in (2000, 200, 20)
    }
    assert {p.setting for p in drawing.published("fig7")} >= {"Skiing (Atari), seed 1", "Venture (Atari), seed 3"}
    assert drawing.published("fig10") == []


@pytest.mark.parametrize("name", ["fig5", "fig13", "fig7"])
def test_caption_stays_within_the_picture(name, drawn):
    about = "3 runs of each, seeds 0 to 2, scale laptop, MinAtar's games and small tasks stand in for Atari's games"
    drawing.draw(reproduction_of(name, about), "x.png")
    (figure,) = drawn
    figure.draw_without_rendering()
    box = figure._suptitle.get_window_extent()
    assert box.x0 > 0
    assert box.x1 < figure.bbox.width
    assert figure._suptitle.get_text().replace("\n", " ").endswith(about)
