"""The list of figures: each names functions that are there."""

import pytest

from cdqn.errors import ConfigError
from cdqn.experiments import reproduce
from cdqn.experiments.games import plans


@pytest.mark.parametrize("name", reproduce.FIGURES)
def test_every_figure_of_the_registry_has_its_functions(name):
    figure = reproduce.FIGURES[name]
    for place in (figure.experiment, figure.picture, figure.cost):
        assert callable(reproduce.load(place))


def test_every_figure_and_table_of_the_paper_is_there_but_the_screenshot():
    assert {*(f"fig{number}" for number in range(1, 16) if number != 12), "table1"} <= set(reproduce.FIGURES)


@pytest.mark.parametrize(("typed", "meant"), [("fig12", "fig1"), ("Fig. 4", "fig4"), ("table", "table1")])
def test_unknown_figure_is_refused_with_the_nearest_names(typed, meant):
    with pytest.raises(ConfigError, match=rf"there is no figure '{typed}' to reproduce: did you mean .*{meant}"):
        reproduce.check([typed])


def test_every_figure_of_games_is_in_the_registry():
    made_of_games = {name for name, figure in reproduce.FIGURES.items() if figure.cost == "costs:of_games"}
    assert made_of_games == set(plans.FIGURES)
