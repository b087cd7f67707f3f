"""What the paper says of each figure of games, and what came out here."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from cdqn.algorithms import ALGORITHMS
from cdqn.experiments.games.results import Result, Results, find, games_of
from cdqn.report.protocol import Table1Cell
from cdqn.report.reproduction import Claim
from cdqn.report.statistics import mean_of

FloatArray = NDArray[np.float64]
MUCH = 10.0
"""A loss that is so many times as large has left the other behind."""


def judge(name: str, results: Results, scale: str) -> list[Claim]:
    """The claims of a figure; verdicts only where there is more than one run, and none at "smoke"."""
    claims = list(_CLAIMS[name](results))
    if scale == "smoke" or any(len(result.runs) < 2 for result in results):
        claims = [claim._replace(holds=None) for claim in claims]
    return claims


def judge_table(cells: list[Table1Cell], scale: str) -> list[Claim]:
    """Table 1: C-DQN's test scores are higher than DQN's."""
    by_game: dict[str, dict[str, Table1Cell]] = {}
    for cell in cells:
        by_game.setdefault(cell.env_id, {})[cell.algorithm] = cell
    claims = []
    for game, of in by_game.items():
        ours, theirs = of["cdqn"], of["dqn"]
        error = np.hypot(ours.stderr or np.nan, theirs.stderr or np.nan)
        holds = None if scale == "smoke" or np.isnan(error) else bool(ours.mean - theirs.mean > 2 * error)
        found = f"{_score(ours)} against {_score(theirs)}"
        published = PUBLISHED_SCORES.get(game, "so it is in 4 of 4 Atari games")
        claims.append(Claim(f"{game}: C-DQN's test score is higher than DQN's", published, found, holds))
    return claims


PUBLISHED_SCORES = {
    "Skiing": "−3697 ± 157 against −29751 ± 224",
    "Tennis": "10.9 ± 6.3 against −2.6 ± 1.4",
    "PrivateEye": "14730 ± 37 against 7948 ± 749",
    "Venture": "893 ± 51 against 386 ± 85",
}
"""Of Table 1: C-DQN against DQN."""


def _score(cell: Table1Cell) -> str:
    return f"{cell.mean:.4g}" + (f" ± {cell.stderr:.2g}" if cell.stderr is not None else "")


# One for each figure ------------------------------------------------------------------------------------


def _fig4(results: Results) -> Iterable[Claim]:
    for game in games_of(results):
        ours, dqn, rg = (find(results, name, game) for name in ("cdqn", "dqn", "rg"))
        for learner in (ours, dqn):
            yield _higher(f"{game}: {_label(learner)} learns, RG almost does not", learner, rg)
        share = rg.gains().mean() / ours.gains().mean()
        found = f"{100 * share:.0f} % of it"
        yield Claim(f"{game}: RG almost does not learn", "below half of C-DQN's gain", found, bool(share < 0.5))
        yield _smaller_loss(f"{game}: RG has a much smaller loss", rg, ours)


def _fig5(results: Results) -> Iterable[Claim]:
    ours, dqn = find(results, "cdqn"), find(results, "dqn")
    yield _leaves_behind("DQN diverges: its loss beside C-DQN's", dqn, ours)
    yield _grows("DQN diverges: its loss beside its own of the first third", dqn)
    yield _stays("C-DQN learns stably: its loss beside its own of the first third", ours)
    yield _higher("C-DQN learns, DQN does not", ours, dqn)


def _fig6(results: Results) -> Iterable[Claim]:
    ours, dqn = find(results, "cdqn", variant="random"), find(results, "dqn", variant="random")
    yield _leaves_behind("DQN can diverge with random replacement: its loss beside C-DQN's", dqn, ours)
    yield _stays("C-DQN does not: its loss beside its own of the first third", ours)
    small, dqn_random = find(results, "cdqn", variant="small random"), find(results, "dqn", variant="small random")
    dqn_fifo = find(results, "dqn", variant="small fifo")
    yield _higher("small memory: C-DQN with random replacement is higher than DQN with FIFO", small, dqn_fifo)
    yield _not_higher("small memory: DQN does not benefit from random replacement", dqn_random, dqn_fifo)
    found = f"{_grown(dqn_random)}; {dqn_random.diverged()} of {len(dqn_random.runs)} runs say that they diverge"
    yield Claim("small memory: DQN does not diverge", "loss not growing", found, None)


def _fig7(results: Results) -> Iterable[Claim]:
    for game in games_of(results):
        ours, dqn = find(results, "cdqn", game), find(results, "dqn", game)
        yield _leaves_behind(f"{game}: DQN is unstable or diverges in loss, beside C-DQN's", dqn, ours)
        yield _higher(f"{game}: C-DQN reaches a higher return", ours, dqn)


def _fig10(results: Results) -> Iterable[Claim]:
    pairs = [(find(results, "cdqn", game), find(results, "dqn", game)) for game in games_of(results)]
    smaller = [ours.line.game for ours, dqn in pairs if np.median(ours.losses()) < np.median(dqn.losses())]
    found = f"{len(smaller)} of {len(pairs)} games ({', '.join(smaller) or 'none'})"
    mostly = 2 * len(smaller) > len(pairs)
    yield Claim("C-DQN's loss is almost always smaller than DQN's", "almost always", found, mostly)
    for ours, dqn in pairs:
        difference = mean_of(ours.returns() - dqn.returns())
        yield Claim(f"{ours.line.game}: C-DQN − DQN, final return", "by game", f"{difference:.2f}", None)


def _fig11(results: Results) -> Iterable[Claim]:
    periods = sorted({result.line.variant for result in results}, key=lambda text: int(text.split()[1]))
    for game in games_of(results):
        shortest = periods[0]
        ours, dqn = (find(results, name, game, shortest) for name in ("cdqn", "dqn"))
        yield _higher(f"{game}: C-DQN is higher than DQN where the {shortest} is short", ours, dqn)
        yield _stays(f"{game}: C-DQN is not unstable there: its loss beside its own of the first third", ours)
        spread = {
            name: np.ptp([find(results, name, game, period).returns().mean() for period in periods])
            for name in ("cdqn", "dqn")
        }
        yield Claim(
            f"{game}: C-DQN needs less tuning of the period: the spread of returns over periods",
            "C-DQN's is smaller",
            f"{spread['cdqn']:.3g} against DQN's {spread['dqn']:.3g}",
            bool(spread["cdqn"] < spread["dqn"]),
        )


def _fig13(results: Results) -> Iterable[Claim]:
    usual, smaller = results[0], results[1]
    gain = mean_of(usual.fluctuations() - smaller.fluctuations())
    found = f"{usual.fluctuations().mean():.3g} and {smaller.fluctuations().mean():.3g}, difference {gain:.2f}"
    yield Claim(
        "the fluctuations of the return come from the step size: with a smaller one they are smaller",
        "smaller",
        found,
        bool(gain.value > 2 * gain.stderr),
    )


def _fig14(results: Results) -> Iterable[Claim]:
    returns = {result.line.variant: mean_of(result.returns()) for result in results}
    best, worst = (choose(returns.values(), key=lambda mean: mean.value) for choose in (max, min))
    found = ", ".join(f"{variant}: {mean:.2f}" for variant, mean in returns.items())
    apart = bool(best.value - worst.value > 2 * np.hypot(best.stderr, worst.stderr))
    yield Claim("the return depends strongly on ε_p", "it does", found, apart)
    losses = {result.line.variant: float(np.median(result.losses())) for result in results}
    found = ", ".join(f"{variant}: {loss:.3g}" for variant, loss in losses.items())
    ratio = max(losses.values()) / min(losses.values())
    yield Claim("the weighted loss depends on ε_p by orders of magnitude", "it does", found, ratio > MUCH)


def _fig15(results: Results) -> Iterable[Claim]:
    for result in results:
        gain = mean_of(result.gains())
        game = result.line.game
        expected = "no reward of a random policy to find γ by" if game == "Breakout" else "learned"
        holds = None if game == "Breakout" else bool(gain.value > 2 * gain.stderr)
        yield Claim(f"{game} is learned with the automatic γ", expected, f"the return rises by {gain:.2f}", holds)


_CLAIMS: dict[str, Callable[[Results], Iterable[Claim]]] = {
    "fig4": _fig4,
    "fig5": _fig5,
    "fig6": _fig6,
    "fig7": _fig7,
    "fig10": _fig10,
    "fig11": _fig11,
    "fig13": _fig13,
    "fig14": _fig14,
    "fig15": _fig15,
}


# Sentences that return ----------------------------------------------------------------------------------


def _label(result: Result) -> str:
    return ALGORITHMS[result.line.algorithm].label


def _higher(text: str, one: Result, other: Result) -> Claim:
    """Paired by seed; holds where the difference of the final returns is more than two standard errors."""
    gain = mean_of(one.returns() - other.returns())
    found = f"{one.returns().mean():.3g} against {other.returns().mean():.3g}, difference {gain:.2f}"
    return Claim(text, "> 0", found, bool(gain.value > 2 * gain.stderr))


def _not_higher(text: str, one: Result, other: Result) -> Claim:
    claim = _higher(text, one, other)
    return claim._replace(expected="≤ 0", holds=not claim.holds)


def _smaller_loss(text: str, one: Result, other: Result) -> Claim:
    ratio = _ratio(one, other)
    return Claim(text, "much smaller", f"{ratio:.2g} times {_label(other)}'s", bool(ratio < 0.5))


def _leaves_behind(text: str, one: Result, other: Result) -> Claim:
    ratios = one.losses() / other.losses()
    found = f"median {np.median(ratios):.3g} times, least {ratios.min():.3g}, most {ratios.max():.3g}"
    return Claim(text, f"> {MUCH:g} times", found, bool(np.median(ratios) > MUCH))


def _grows(text: str, result: Result) -> Claim:
    return Claim(text, f"> {MUCH:g} times", _grown(result), bool(np.median(result.growths()) > MUCH))


def _stays(text: str, result: Result) -> Claim:
    return Claim(text, f"< {MUCH:g} times", _grown(result), bool(result.growths().max() < MUCH))


def _grown(result: Result) -> str:
    growths = result.growths()
    return f"median {np.median(growths):.3g} times, most {growths.max():.3g}"


def _ratio(one: Result, other: Result) -> float:
    return float(np.median(one.losses() / other.losses()))
