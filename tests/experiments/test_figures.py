"""Every experiment has a figure, and a figure never trains."""

from pathlib import Path

import pytest

from cdqn import experiments
from drawing_imports import assert_draws_only

FIGURES = sorted(Path(experiments.__file__).parent.glob("*/figure.py"))


def test_every_experiment_has_a_figure():
    folders = {path.parent for path in Path(experiments.__file__).parent.glob("*/__init__.py")}
    assert {figure.parent for figure in FIGURES} == folders
    assert len(folders) == 5


@pytest.mark.parametrize("source", FIGURES, ids=lambda path: path.parent.name)
def test_figure_imports_nothing_that_trains(source):
    assert_draws_only(source)
