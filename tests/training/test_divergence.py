"""The watches: Q beyond what can be true, beyond what was earned, or creeping; and the advice that goes with each."""

import numpy as np
import pytest

from cdqn.config import Config
from cdqn.training.divergence import (
    DivergenceWatch,
    LagWatch,
    OverestimationWatch,
    SlowModeWatch,
    Watch,
    divergence_advice,
    hasty,
    slow_advice,
)
from helpers import assert_same_state, earn, progress

NAN = float("nan")
HASTY = Config(learning_rate=0.01, target_period_updates=1)


# beyond what can be true


@pytest.mark.parametrize("q", [149.0, -149.0, 0.0])
def test_watch_is_silent_below_the_bound_and_its_margin(q):
    assert DivergenceWatch().check(progress(q_mean=q)) is None


@pytest.mark.parametrize("q", [151.0, -151.0, float("inf"), NAN])
def test_watch_warns_of_values_beyond_the_bound(q):
    message = DivergenceWatch().check(progress(q_mean=q))
    assert message.startswith(f"training is diverging: Q, the return that the network expects, is {q:.4g} on average, ")
    assert "no policy can earn more than 100:" in message


@pytest.mark.parametrize(("error", "warned"), [(299.0, False), (301.0, True), (float("inf"), True)])
def test_watch_warns_of_errors_beyond_twice_the_bound(error, warned):
    message = DivergenceWatch().check(progress(loss=error**2))
    assert (message is not None) == warned


@pytest.mark.parametrize(("unit", "warned"), [(2.0, False), (4.0, True)])
def test_learned_errors_are_compared_in_units_of_the_rewards(unit, warned):
    message = DivergenceWatch().check(progress(loss=100.0**2), unit)
    assert (message is not None) == warned
    assert not warned or "error of Q is 400, and no policy can earn more than 100:" in message


def test_watch_warns_once_until_it_has_ceased():
    watch = DivergenceWatch()
    warned = [watch.check(progress(q_mean=q)) is not None for q in (200.0, 300.0, 50.0, 200.0, 200.0)]
    assert warned == [True, False, False, True, False]


def test_watch_is_silent_while_nothing_is_known():
    watch = DivergenceWatch()
    assert watch.check(progress(q_bound=None, q_mean=1e9)) is None
    assert watch.check(progress(q_mean=None, loss=None)) is None


@pytest.mark.parametrize(("q", "warned"), [(-0.004, False), (149.0, False), (-151.0, True)])
def test_rewards_that_were_all_0_are_no_bound_of_0(q, warned):
    message = DivergenceWatch().check(progress(q_bound=0.0, q_mean=q, loss=0.01))
    assert (message is not None) == warned
    if message:
        assert message.endswith("is -151 on average, and every reward so far was 0")


# beyond what was earned: between −10 and 60, with a slack of 30


def overestimation_of(values, episodes=20):
    watch = OverestimationWatch()
    return [watch.check(progress(q_mean=q), episodes) for q in values]


def test_overestimation_is_not_judged_by_fewer_than_20_episodes():
    assert overestimation_of([500.0] * 5, episodes=19) == [None] * 5
    assert any(overestimation_of([500.0] * 5, episodes=20))


@pytest.mark.parametrize("q", [89.0, -39.0, 0.0, None])
def test_overestimation_is_silent_within_the_margin(q):
    assert overestimation_of([q] * 5) == [None] * 5


def test_overestimation_is_silent_while_nothing_was_earned():
    watch = OverestimationWatch()
    unknown = progress(q_mean=500.0, earned_low=None, earned_high=None)
    assert [watch.check(unknown, 50) for _ in range(5)] == [None] * 5


def test_overestimation_is_silent_where_episodes_earned_0_and_judges_again_where_they_earn():
    watch = OverestimationWatch()
    nothing, something = {"earned_low": 0.0, "earned_high": 0.0}, {"earned_low": 0.0, "earned_high": 0.9}
    rows = [nothing] * 5 + [something] * 3
    warned = [watch.check(progress(q_mean=-0.5, **earned), 50) is not None for earned in rows]
    assert warned == [False] * 7 + [True]


@pytest.mark.parametrize(("q", "which"), [(91.0, "overestimated"), (-41.0, "underestimated")])
def test_overestimation_is_warned_of_at_the_third_row_and_again_only_after_it_came_back(q, which):
    messages = overestimation_of([q, q, q, q, q, 0.0, q, q, 0.0, q, q, q, q])
    assert [message is not None for message in messages] == [False] * 2 + [True] + [False] * 8 + [True, False]
    assert messages[2].startswith(f"Q is {which}: the network expects a return of {q:.4g} on average, ")
    assert "last 20 episodes earned between -10 and 60" in messages[2]


def test_overestimation_leaves_nan_to_the_watch_of_the_bound():
    assert overestimation_of([NAN] * 4) == [None] * 4


def test_q_that_is_coming_towards_what_was_earned_is_not_warned_of():
    """MountainCar: Q begins at 0 and falls to −100, while every episode has earned −100."""
    coming = [300.0, 250.0, 200.0, 150.0, 120.0, 100.0, 80.0]
    assert overestimation_of(coming) == [None] * 7
    stuck = overestimation_of([*coming[:3], 200.0, 200.0, 210.0])
    assert [message is not None for message in stuck] == [False] * 4 + [True, False]


# the slow mode


def slow_mode_of(values, budget=None):
    """The rows are spread evenly over the budget."""
    watch = SlowModeWatch()
    budget = len(values) if budget is None else budget
    rows = [progress(step=(number + 1) * budget // len(values), q_mean=q) for number, q in enumerate(values)]
    return [message for row in rows if (message := watch.check(row, budget))]


@pytest.mark.parametrize("rows", [20, 40, 400, 1000])
@pytest.mark.parametrize("sign", [1, -1])
def test_even_climb_is_noticed_exactly_once(rows, sign):
    messages = slow_mode_of(sign * np.linspace(0, 100, rows), budget=20_000)
    assert len(messages) == 1
    assert ("rising" if sign > 0 else "falling") in messages[0]
    assert "second half of the budget" in messages[0]


def test_notice_comes_before_the_end_of_the_budget():
    watch = SlowModeWatch()
    noticed = [step for step in range(1, 401) if watch.check(progress(step=step, q_mean=float(step)), 400)]
    assert noticed == [390]


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(100),
        np.full(100, 50.0),
        100 * (1 - np.exp(-np.arange(100) / 10)),
        np.linspace(0, 100, 100) + np.random.default_rng(0).normal(size=100, scale=25),
        50 + np.linspace(0, 20, 100),
        np.where(np.arange(100) < 90, np.linspace(0, 100, 100), NAN),
        np.full(100, NAN),
    ],
    ids=["zero", "constant", "converged", "noisy", "moved little", "nan at the end", "nan"],
)
@pytest.mark.filterwarnings("error")
def test_q_that_does_not_creep_is_no_slow_mode(values):
    assert slow_mode_of(values) == []


def test_rows_before_the_first_update_are_no_points():
    watch = SlowModeWatch()
    assert watch.check(progress(step=50, q_mean=None), 100) is None
    assert watch.points == []


# V behind its target


def lag_of(lags, unit=1.0, q_mean=10.0):
    watch = LagWatch()
    rows = (
        progress(q_mean=q_mean, statistics={"v_lag": lag}, update=1_000 * number) for number, lag in enumerate(lags)
    )
    return [watch.check(row, unit) for row in rows]


def test_v_that_lags_is_warned_of_after_5000_updates_and_again_only_after_it_caught_up():
    messages = lag_of([0.51] * 8 + [0.49] + [-0.51] * 6)
    assert [message is not None for message in messages] == [False] * 5 + [True] + [False] * 8 + [True]
    assert messages[5] == "V does not follow: it is 0.51 below the target that it stands for, and Q is 10"
    assert "0.51 above the target" in messages[-1]


@pytest.mark.parametrize(("unit", "warned"), [(0.5, False), (2.0, True)])
def test_lag_is_compared_in_units_of_the_rewards(unit, warned):
    assert any(lag_of([0.5] * 6, unit)) == warned


def test_algorithms_without_v_and_rows_without_updates_do_not_lag():
    watch = LagWatch()
    assert [watch.check(progress()) for _ in range(9)] == [None] * 9
    assert lag_of([9.0] * 9, q_mean=None) == [None] * 9


def test_lag_is_told_with_what_would_help():
    watch = Watch(Config(algorithm="dcdqn", target_period_updates=20), 1)
    rows = [progress(statistics={"v_lag": -3.0}, step=step, update=10 * step) for step in range(0, 600, 100)]
    told = [warned for row in rows for warned in watch.check(row, 1.0, 10**6)]
    assert [(warned.topic, warned.step) for warned in told] == [("lagging", 500)]
    assert told[0].message.endswith("v_step_size or slow_copy_updates (docs/denoised.md), or algorithm cdqn")


# advice


def test_advice_for_dqn_with_a_short_period_is_to_lengthen_it():
    config = Config(algorithm="dqn", target_period_updates=99)
    assert divergence_advice(config) == "lengthen target_period_updates (now 99), or use algorithm cdqn"


def test_advice_for_dqn_with_a_long_period_is_the_convergent_algorithm():
    assert divergence_advice(Config(algorithm="dqn", target_period_updates=100)) == "use algorithm cdqn"


def test_advice_for_a_hasty_cdqn_is_the_target_period():
    message = divergence_advice(HASTY)
    assert message.startswith("target_period_updates 1 is very short for learning_rate 0.01")


@pytest.mark.parametrize("algorithm", ["cdqn", "rg"])
def test_advice_otherwise_is_smaller_steps(algorithm):
    config = Config(algorithm=algorithm, learning_rate=3e-4, batch_size=48).resolved()
    assert divergence_advice(config) == "lower learning_rate (now 0.0003) or raise batch_size (now 48)"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"learning_rate": 5e-3, "target_period_updates": 1}, True),
        ({"learning_rate": 4.9e-3, "target_period_updates": 1}, False),
        ({"learning_rate": 0.05, "target_period_updates": 10}, True),
        ({"learning_rate": 0.05, "target_period_updates": 11}, False),
        ({"learning_rate": 0.01, "target_period_updates": 1, "algorithm": "dqn"}, False),
        ({"learning_rate": 0.01, "algorithm": "rg"}, False),
    ],
)
def test_haste_is_the_step_size_per_update_of_the_period(settings, expected):
    assert hasty(Config(**settings)) == expected


def test_slow_advice_names_what_makes_it_faster():
    slow = slow_advice(Config(target_period_updates=100, n_step=2, learning_rate=1e-4))
    assert slow.startswith("C-DQN learns slowly here: lower target_period_updates (now 100), or raise n_step (now 2)")
    assert "learning_rate (now 0.0001) or steps" in slow
    assert "target_period_updates" not in slow_advice(Config(target_period_updates=5))
    assert slow_advice(Config(algorithm="rg")).startswith("RG learns slowly here: raise n_step (now 1)")
    assert slow_advice(Config(algorithm="dqn")) is None


# all together


def check(watch, **values):
    return [warning.message for warning in watch.check(progress(**values), 1.0, 10_000)]


def test_hasty_run_is_warned_of_once_also_after_it_was_resumed():
    watch, resumed = Watch(HASTY, 1), Watch(HASTY, 1)
    (message,) = check(watch)
    assert message.startswith("target_period_updates 1 is very short")
    resumed.load_state_dict(watch.state_dict())
    assert check(watch) == check(resumed) == []
    assert check(Watch(Config().resolved(), 1)) == []


def test_warnings_carry_the_step_and_the_advice():
    watch = Watch(Config(algorithm="dqn", target_period_updates=10), 1)
    (warning,) = watch.check(progress(step=77, q_mean=1e4), 1.0, 10_000)
    assert warning.step == 77
    assert warning.message.startswith("training is diverging: ")
    assert warning.message.endswith("; lengthen target_period_updates (now 10), or use algorithm cdqn")


def test_divergence_is_not_told_a_second_time_as_overestimation():
    watch = Watch(Config().resolved(), 1)
    for _ in range(20):
        earn(watch.earned, [1.0])
    assert [len(check(watch, q_mean=1e4)) for _ in range(5)] == [1, 0, 0, 0, 0]


def test_creeping_q_is_told_with_the_advice_except_for_dqn():
    told = {}
    for algorithm in ("cdqn", "dqn"):
        watch = Watch(Config(algorithm=algorithm).resolved(), 1)
        rows = [progress(step=step, q_mean=step / 200) for step in range(100, 10_001, 100)]
        told[algorithm] = [warning.message for row in rows for warning in watch.check(row, 1.0, 10_000)]
    assert told["dqn"] == []
    (message,) = told["cdqn"]
    assert "still rising evenly" in message
    assert "C-DQN learns slowly here: lower target_period_updates (now 100)" in message


@pytest.mark.parametrize("saved_at", [1, 20, 21, 22, 37, 38])
def test_watch_goes_on_with_the_same_warnings_wherever_it_was_saved(saved_at):
    config = Config().resolved()
    one, other = Watch(config, 1), Watch(config, 1)
    warnings = []
    for number in range(40):
        if number == saved_at:
            other.load_state_dict(one.state_dict())
        behind = {"v_lag": 9.0 if 18 <= number < 30 else 0.0}
        step, q_mean = (number + 1) * 100, 5.0 * number
        row = progress(step=step, update=10 * step, q_mean=q_mean, q_bound=100.0, earned_high=40.0, statistics=behind)
        found = []
        for watch in (one, other) if number >= saved_at else (one,):
            earn(watch.earned, [1.0])
            found.append(list(watch.check(row, 1.0, 4_000)))
        assert found[0] == found[-1]
        warnings += found[0]
    assert len(warnings) == 4  # overestimated, then V behind, then diverging, then still rising
    assert_same_state(one.state_dict(), other.state_dict())


def test_run_of_an_older_version_is_watched_from_there_on():
    watch = Watch(HASTY, 1)
    watch.load_state_dict({})
    assert len(check(watch)) == 1


def test_run_that_cannot_learn_says_so_once_and_names_what_may_be_at_fault():
    watch = Watch(Config(n_step=12, warmup_steps=100, batch_size=32), 1)
    said = [[w.message for w in watch.check(progress(step=step, update=0), 1.0, 1000)] for step in (100, 199, 200, 300)]
    assert [len(messages) for messages in said] == [0, 0, 1, 0]
    for word in ("step 200", "batch_size 32", "n_step 12", "discard_fraction 0"):
        assert word in said[2][0]
    other = Watch(Config(n_step=12, warmup_steps=100, batch_size=32), 1)
    other.load_state_dict(watch.state_dict())
    assert not list(other.check(progress(step=400, update=0), 1.0, 1000))
    learning = Watch(Config(n_step=12, warmup_steps=100, batch_size=32), 1)
    assert not list(learning.check(progress(step=300, update=3), 1.0, 1000))
