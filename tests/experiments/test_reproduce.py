"""The list of figures: each names functions that are there."""

import pytest

from cdqn.experiments import reproduce


@pytest.mark.parametrize("name", reproduce.FIGURES)
def test_every_figure_of_the_registry_has_its_functions(name):
    for place in reproduce.FIGURES[name]:
        assert callable(reproduce._load(place))
