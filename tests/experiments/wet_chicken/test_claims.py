"""Figure 8: its curves as numbers, and verdicts that follow them."""

import numpy as np
import pytest

from cdqn.experiments.wet_chicken.claims import EXCESS, Curves, judge, last_part, rows


def curves_of(rewards, q, repeats=4):
    """Constant curves with a little spread between repeats."""
    epoch_E = np.arange(0, 101, 5)
    spread_R = np.linspace(-0.01, 0.01, repeats)
    shape = (len(epoch_E), repeats)
    reward_ER = {name: np.broadcast_to(value + spread_R, shape) for name, value in rewards.items()}
    q_ERXA = {name: np.full((*shape, 20, 3), value) for name, value in q.items()}
    return Curves(epoch_E, reward_ER, q_ERXA)


def test_distance_is_the_norm_over_positions_and_actions():
    curves = curves_of({"cdqn": 14, "dqn": 14.6, "rg": 10}, {"cdqn": 1.0, "dqn": 0.0, "rg": 3.0})
    distances = {name: value_ER[-1, 0] for name, value_ER in curves.distances().items()}
    unit = 60**0.5
    assert distances == pytest.approx({"cdqn-dqn": unit, "cdqn-rg": 2 * unit, "dqn-rg": 3 * unit, EXCESS: 0})


def test_nothing_is_judged_by_a_single_repeat():
    curves = curves_of({"cdqn": 14, "dqn": 14.6, "rg": 10}, {"cdqn": 1.0, "dqn": 0.0, "rg": 3.0}, repeats=1)
    assert {claim.holds for claim in judge(curves, "paper")} == {None}


def test_verdicts_follow_the_numbers():
    good = curves_of({"cdqn": 13.97, "dqn": 14.64, "rg": 10.57}, {"cdqn": 1.0, "dqn": 0.0, "rg": 3.0})
    verdicts = {claim.text: claim.holds for claim in judge(good, "paper")}
    assert verdicts["final average reward of DQN"] is True
    assert verdicts["C-DQN is better than RG: C-DQN − RG"] is True
    assert next(claim for claim in judge(good, "paper") if "lies on the line" in claim.text).holds is True
    bad = curves_of({"cdqn": 9.0, "dqn": 14.2, "rg": 10.5}, {"cdqn": 4.0, "dqn": 0.0, "rg": 3.0})
    verdicts = {claim.text: claim.holds for claim in judge(bad, "paper")}
    assert verdicts["final average reward of DQN"] is False
    assert verdicts["C-DQN is better than RG: C-DQN − RG"] is False
    assert next(claim for claim in judge(bad, "paper") if "lies on the line" in claim.text).holds is False
    assert all(claim.holds is None for claim in judge(bad, "smoke"))


def test_rows_are_means_over_repeats_with_their_standard_error():
    curves = curves_of({"cdqn": 13.9, "dqn": 14.6, "rg": 10.4}, {"cdqn": 1.0, "dqn": 0.0, "rg": 3.0})
    row = next(row for row in rows(curves) if (row.algorithm, row.step) == ("dqn", 100))
    reward_R = curves.reward_ER["dqn"][-1]
    assert row.value == pytest.approx(reward_R.mean())
    assert row.stderr == pytest.approx(reward_R.std(ddof=1) / 2)
    assert row.setting == "4 repeats"
    assert last_part(curves, curves.reward_ER["dqn"]) == pytest.approx(reward_R)


def test_other_algorithms_are_judged_by_what_there_is_of_them():
    rewards, q = {"cdqn": 13.97, "dqn": 14.64, "rg": 10.57, "dcdqn": 14.6}, {"cdqn": 1.0, "dqn": 0.0, "rg": 3.0}
    all_four = {claim.text: claim for claim in judge(curves_of(rewards, q | {"dcdqn": 0.1}), "paper")}
    assert all_four["final average reward of DC-DQN"].expected == "not in the paper"
    assert all_four["beyond the paper, DC-DQN is better than C-DQN: DC-DQN − C-DQN"].holds is True
    alone = judge(curves_of({"dcdqn": 14.6}, {"dcdqn": 0.1}), "paper")
    assert [claim.text for claim in alone] == ["final average reward of DC-DQN"]
    two = judge(curves_of({"dqn": 14.64, "cdqn": 13.97}, {"dqn": 0.0, "cdqn": 1.0}), "paper")
    assert not any("RG" in claim.text for claim in two)
