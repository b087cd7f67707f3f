"""Which runs a figure of games is made of."""

import pytest

from cdqn.experiments.games.plans import FIGURES
from cdqn.presets import PRESETS


def test_every_preset_of_the_papers_games_is_shown_by_a_figure():
    shown = {preset for figure in FIGURES.values() for preset in figure.presets.values()}
    assert shown == {name for name in PRESETS if name.startswith("paper-") and name != "paper-B.1"}


@pytest.mark.parametrize("scale", ["smoke", "laptop", "paper"])
@pytest.mark.parametrize("name", FIGURES)
def test_every_run_has_valid_settings_and_a_folder_of_its_own(name, scale):
    lines = FIGURES[name].lines(scale)
    assert len({line.run_name(0) for line in lines}) == len(lines)
    for line in lines:
        config = line.config(3)
        assert (config.algorithm, config.seed) == (line.algorithm, 3)


def test_paper_scale_is_the_published_runs():
    runs = {name: len(figure.lines("paper")) * figure.seeds("paper") for name, figure in FIGURES.items()}
    # Sec. 5.1: 2 games × 3; 5.2: 2 and 5; 5.3: 4 games × 2 × 3 seeds; B.2: 6 × 2; B.3: 2 × 2 × 3; B.5 beside 5.3:
    # 3 + 3; E.2: 3; E.3: 7 games.
    assert runs == {
        "fig4": 6,
        "fig5": 2,
        "fig6": 5,
        "fig7": 24,
        "fig10": 12,
        "fig11": 12,
        "fig13": 6,
        "fig14": 3,
        "fig15": 7,
        "table1": 24,
    }


def test_paper_scale_changes_nothing_of_the_presets():
    for figure in FIGURES.values():
        for line in figure.lines("paper"):
            assert line.settings == {}


def test_smoke_differs_from_laptop_in_its_size_alone():
    for figure in FIGURES.values():
        for small, large in zip(figure.lines("smoke"), figure.lines("laptop"), strict=True):
            assert small._replace(settings={}) == large._replace(settings={})
            assert small.config(0).steps in (400, 2_200)
            assert small.config(0).loss == large.config(0).loss


def test_figures_share_the_runs_they_have_in_common():
    for scale in ("laptop", "paper"):
        table, fig7 = ({line.run_name(0) for line in FIGURES[name].lines(scale)} for name in ("table1", "fig7"))
        assert table == fig7
        assert len({line.run_name(0) for line in FIGURES["fig13"].lines(scale)} & fig7) == 1
