"""What the paper says of figures 1, 2 and 3, beside what came out."""

from collections.abc import Sequence

import numpy as np

from cdqn.experiments.section3.runs import (
    DISTANCE,
    MIN_Q,
    MSBE,
    RETURN,
    TARGET_PERIOD,
    Curves,
    Time,
    first_below,
    learning_time,
)
from cdqn.report.authors import authors_curves
from cdqn.report.reproduction import Claim
from cdqn.tabular import LABELS

SMALL, DOUBLED = (10, 0.9), (20, 0.95)
"""Width and γ of the two systems of figure 1."""
PAPER_RUNS, PAPER_TRIALS = 10, 100
"""Of figures 1 and 2, and of figure 3. With fewer, nothing is held against the authors' curves."""
WITHIN = 0.15
"""A learning time is the authors' if it is no further from it than this."""
WITHIN_FACTOR = 1.5
"""The paper's predictions of a growth are approximate; this is what that is taken to mean."""

_NAMES = {MSBE: "MSBE", DISTANCE: "|Q−Q*|²"}


# The sentences of figure 1 ------------------------------------------------------------------------------


def fig1_claims(curves: dict[tuple[str, int], Curves], seed: int) -> list[Claim]:
    """Learning times beside the authors', how they grow with the system, and what an MSBE of 1 is worth."""
    rng = np.random.default_rng([seed, 1])
    times = {
        (algorithm, width, quantity): learning_time(curve, quantity, rng)
        for (algorithm, width), curve in curves.items()
        for quantity in (MSBE, DISTANCE)
    }
    (small, _), (doubled, _) = SMALL, DOUBLED
    runs = min(len(curve.values[MSBE]) for curve in curves.values())
    claims = []
    for algorithm in ("q_table", "rg"):
        for quantity, series in ((MSBE, f"MSBE_{LABELS[algorithm]}"), (DISTANCE, f"dist2_{LABELS[algorithm]}")):
            text = f"{LABELS[algorithm]}, width {small}: steps to {_NAMES[quantity]} < 1"
            authors = _authors_time("fig1_cliff_walking", "gamma0.9_width10_curves", series)
            claims.append(_beside_authors(text, authors, times[algorithm, small, quantity], runs >= PAPER_RUNS))
    for algorithm in ("q_table", "rg"):
        for quantity in (MSBE, DISTANCE):
            text = f"{LABELS[algorithm]}, width {doubled}: steps to {_NAMES[quantity]} < 1"
            claims.append(Claim(text, "no data of the authors", _time(times[algorithm, doubled, quantity]), None))
    for algorithm, predicted in (("q_table", 4), ("rg", 8)):
        for quantity in (MSBE, DISTANCE):
            long, short = times[algorithm, doubled, quantity], times[algorithm, small, quantity]
            growth = long.step / short.step
            found = _plus_minus(growth, (long.resampled_B / short.resampled_B).std(ddof=1))
            text = f"{LABELS[algorithm]}: time to {_NAMES[quantity]} < 1 on the doubled system"
            near = bool(predicted / WITHIN_FACTOR <= growth <= predicted * WITHIN_FACTOR)
            claims.append(Claim(text, f"{predicted} times, approximately", f"{found} times", near))
    for width in (small, doubled):
        slower = times["rg", width, MSBE].step / times["q_table", width, MSBE].step
        text = f"width {width}: RG learns significantly more slowly"
        claims.append(Claim(text, "slower", f"{slower:.1f} times the steps to MSBE < 1", bool(slower > 1)))
        rg, table = (_distance_at(curves[name, width], times[name, width, MSBE]) for name in ("rg", "q_table"))
        text = f"width {width}: at the same MSBE, RG is farther from Q*"
        found = f"|Q−Q*|² = {rg:.3g} against {table:.3g} as the MSBE falls below 1"
        claims.append(Claim(text, "farther", found, bool(rg > table)))
    for width in (small, doubled):
        text = f"C-DQN, width {width}: steps to MSBE < 1, target table copied every {TARGET_PERIOD} updates"
        claims.append(Claim(text, "not in the paper", _time(times["cdqn", width, MSBE]), None))
    return claims


def _distance_at(curves: Curves, time: Time) -> float:
    """Mean |Q−Q*|² at a learning time; NaN if it was not reached."""
    return float(np.where(curves.step_R == time.step, curves.values[DISTANCE].mean(0), 0.0).sum() or np.nan)


# The sentences of figure 2 ------------------------------------------------------------------------------


def fig2_claims(curves: dict[tuple[str, float], Curves], seed: int) -> list[Claim]:
    """Q-table learning does not mind γ, RG does, and RG with γ = 1 does not learn."""
    rng = np.random.default_rng([seed, 2])
    times = {key: learning_time(curve, MSBE, rng) for key, curve in curves.items()}
    claims = []
    for (algorithm, discount), time in times.items():
        if (algorithm, discount) == ("rg", 1.0):
            continue
        authors = _authors_time("fig2_gamma_dependence", "MSBE_vs_steps", f"{LABELS[algorithm]}_gamma{discount:g}")
        text = f"{LABELS[algorithm]}, γ = {discount:g}: steps to MSBE < 1"
        # Not judged: at γ = 0.99 the standard error of RG's time is itself 15 %.
        claims.append(_beside_authors(text, authors, time, judged=False))
    step_G = np.array([time.step for (algorithm, _), time in times.items() if algorithm == "q_table"])
    spread = step_G.max() / step_G.min() - 1
    text = "Q-table: roughly the same time for all γ"
    claims.append(Claim(text, "within 30 %", f"longest {spread:.0%} above shortest", bool(spread <= 0.3)))
    discounts = [discount for algorithm, discount in curves if algorithm == "rg" and discount < 1]
    for low, high in ((0.9, 0.99), (0.99, 0.999)):
        inside = [discount for discount in discounts if low <= discount <= high]
        if len(inside) > 1:
            found = _exponent(inside, [times["rg", discount] for discount in inside])
            text = f"RG, γ from {inside[0]:g} to {inside[-1]:g}: time ∝ (1−γ)^−x"
            claims.append(Claim(text, "x roughly 1", f"x = {found}", None))
    end = curves["rg", 1.0]
    mean, stderr = end.at_end(MSBE)
    _, authors_y = authors_curves("fig2_gamma_dependence")["MSBE_vs_steps", "RG_gamma1"]
    text = f"RG, γ = 1: not converged after {end.step_R[-1]:,} steps"
    published = f"does not learn (MSBE {authors_y[-1]:.3g} at 10⁷)"
    claims.append(Claim(text, published, f"MSBE {_plus_minus(mean, stderr)}", bool(end.values[MSBE][:, -1].min() > 1)))
    return claims


def _exponent(discounts: Sequence[float], times: Sequence[Time]) -> str:
    """The slope of log time against log 1/(1−γ), with its standard error over resamples of the runs."""
    x_G = -np.log(1 - np.array(discounts))
    x_G = (x_G - x_G.mean()) / ((x_G - x_G.mean()) ** 2).sum()
    resampled_B = x_G @ np.log([time.resampled_B for time in times])
    return _plus_minus(float(x_G @ np.log([time.step for time in times])), resampled_B.std(ddof=1))


# The sentences of figure 3 ------------------------------------------------------------------------------


def fig3_claims(curves: dict[tuple[str, float], Curves]) -> list[Claim]:
    """Where each of the four ends, beside the authors' curve at the same step."""
    published = authors_curves("fig3_one_way_cliff")
    claims = []
    # The last number is how exactly the authors' curve is known (src/cdqn/report/authors/README.txt).
    panels = ((RETURN, "total_reward", "greedy return", 0.15), (MIN_Q, "min_Q", "min Q(s, a)", 0.02))
    for quantity, panel, name, exact_to in panels:
        for (algorithm, epsilon), curve in curves.items():
            end = curve.step_R[-1]
            authors = float(np.interp(end, *published[panel, f"{LABELS[algorithm]}_eps{epsilon:g}"]))
            mean, stderr = curve.at_end(quantity)
            # The authors' mean of as many runs has an error as large: three standard errors of the difference.
            allowed = max(3 * np.sqrt(2) * stderr, exact_to)
            holds = bool(abs(mean - authors) <= allowed) if len(curve.values[quantity]) >= PAPER_TRIALS else None
            text = f"{LABELS[algorithm]}, ε = {epsilon:g}: {name} after {end:,} steps"
            claims.append(Claim(text, f"{authors:.4g}, within {allowed:.2g}", _plus_minus(mean, stderr), holds))
    return claims


# Shared -------------------------------------------------------------------------------------------------


def _authors_time(name: str, panel: str, series: str) -> float | None:
    """The authors' learning time, if they have published that curve."""
    curve = authors_curves(name).get((panel, series))
    return None if curve is None else float(first_below(curve[0], curve[1][None])[0])


def _beside_authors(text: str, authors: float | None, time: Time, judged: bool) -> Claim:
    """A learning time held against the authors', if they have one."""
    if authors is None:
        return Claim(text, "no data of the authors", _time(time), None)
    off = time.step / authors - 1
    expected = f"{authors:,.0f}, within {WITHIN:.0%}" if judged else f"{authors:,.0f}"
    return Claim(text, expected, f"{_time(time)} ({off:+.1%})", bool(abs(off) <= WITHIN) if judged else None)


def _time(time: Time) -> str:
    return "not reached" if np.isnan(time.step) else f"{time.step:,.0f} ± {time.stderr:,.0f}"


def _plus_minus(value: float, stderr: float) -> str:
    """With two digits of the error."""
    if not stderr >= 1e-4:  # or NaN, for a single run
        return f"{value:.4g} ± {stderr:.1g}"
    digits = max(0, 1 - int(np.floor(np.log10(stderr))))
    return f"{value:,.{digits}f} ± {stderr:.{digits}f}"
