"""Verdicts on what the paper says of its games: each is seen to hold, and each to fail."""

import pytest
from game_runs import make_results

from cdqn.experiments.games.claims import judge, judge_table
from cdqn.experiments.games.plans import FIGURES
from cdqn.report.protocol import Table1Cell


def as_published(line):
    """Final return and loss of a world in which the paper is right."""
    if line.algorithm == "rg":
        return 1.0, 0.001
    unstable = line.group in ("fig5", "fig7") or line.variant in ("random", "period 5")
    if line.algorithm == "dqn":
        if line.group == "fig14":
            return {"ε_p 1e-8": (3.0, 1e-4), "ε_p 1e-6": (6.0, 1e-2), "ε_p 1e-4": (9.0, 1.0)}[line.variant]
        return (2.0, 1e4) if unstable else (7.0, 0.9)
    return (9.0, 0.5)


def upside_down(line):
    """Everything the other way round."""
    if line.algorithm == "rg":
        return 12.0, 1e6
    if line.algorithm == "dqn":
        return (10.0, 0.4) if line.variant != "small random" else (30.0, 0.4)
    return (1.0 if line.variant != "period 500" else 50.0, 2e4)


def judged(name, behaviour):
    return [claim.holds for claim in judge(name, make_results(name, behaviour), "laptop") if claim.holds is not None]


JUDGED = [name for name in FIGURES if name not in ("table1", "fig13", "fig15")]


@pytest.mark.parametrize("name", JUDGED)
def test_claims_hold_where_the_paper_is_right(name):
    verdicts = judged(name, as_published)
    assert verdicts
    assert all(verdicts), judge(name, make_results(name, as_published), "laptop")


@pytest.mark.parametrize("name", JUDGED)
def test_claims_fail_where_it_is_the_other_way_round(name):
    behaviour = (lambda line: (5.0, 0.1)) if name == "fig14" else upside_down
    assert not any(judged(name, behaviour)), judge(name, make_results(name, behaviour), "laptop")


def test_fluctuations_are_compared(monkeypatch):
    results = make_results("fig13", lambda line: (30.0 if line.variant == "" else 3.0, 1.0))  # a slope is a spread too
    assert [claim.holds for claim in judge("fig13", results, "laptop")] == [True]
    assert [claim.holds for claim in judge("fig13", results[::-1], "laptop")] == [False]


def test_games_with_the_automatic_discount_are_learned_but_breakout_is_only_reported():
    claims = judge("fig15", make_results("fig15", lambda line: (5.0, 1.0)), "laptop")
    assert {claim.text.split()[0]: claim.holds for claim in claims} == {
        "SpaceInvaders": True,
        "Freeway": True,
        "Asterix": True,
        "Breakout": None,
    }


@pytest.mark.parametrize(("scale", "seeds"), [("smoke", 3), ("laptop", 1)])
def test_nothing_is_judged_at_smoke_or_from_single_runs(scale, seeds):
    claims = judge("fig4", make_results("fig4", as_published, seeds), scale)
    assert {claim.holds for claim in claims} == {None}


@pytest.mark.parametrize(
    ("ours", "stderr", "scale", "holds"),
    [
        (10.0, 1.0, "laptop", True),
        (5.5, 1.0, "laptop", False),
        (10.0, None, "laptop", None),
        (10.0, 1.0, "smoke", None),
    ],
)
def test_table_compares_test_scores(ours, stderr, scale, holds):
    cells = [Table1Cell("Skiing", "cdqn", 3, ours, stderr), Table1Cell("Skiing", "dqn", 3, 5.0, stderr)]
    (claim,) = judge_table(cells, scale)
    assert claim.holds is holds
    assert "−3697" in claim.expected
