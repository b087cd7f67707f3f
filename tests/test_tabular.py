"""The table updates against one autograd step of `losses.py`, and the compiled loops against plain Python."""

import numpy as np
import pytest
import torch

from cdqn import tabular
from cdqn.errors import ConfigError
from cdqn.losses import action_value, cdqn_loss, denoised_reward, dqn_loss, dqn_target, msbe_loss, msbe_target
from cdqn.tabular import FiniteMDP
from cdqn.tasks.cliff_walking import cliff_walking, one_way_cliff_walking

DISCOUNT, LEARNING_RATE = 0.9, 0.5


def random_table(mdp: FiniteMDP, rng: np.random.Generator) -> np.ndarray:
    return np.where(mdp.valid, rng.normal(size=mdp.valid.shape), -np.inf)


def transition(mdp: FiniteMDP, state: int, action: int) -> tuple[int, int, float, int, bool]:
    where = state, action
    return state, action, mdp.reward[where], int(mdp.next_state[where]), bool(mdp.terminal[where])


def autograd_step(q_SA: np.ndarray, target_SA: np.ndarray, mdp: FiniteMDP, state: int, action: int, algorithm: str):
    """The table after one step of SGD, learning rate 0.5, on the loss of one transition with ρ = ½δ²."""
    table = torch.tensor(q_SA, requires_grad=True)
    optimizer = torch.optim.SGD([table], lr=LEARNING_RATE)
    _, _, reward, next_state, terminal = transition(mdp, state, action)
    q_B = action_value(table[[state]], torch.tensor([action]))
    common = torch.tensor([reward], dtype=torch.float64), torch.tensor([terminal]), DISCOUNT
    target = torch.tensor(q_SA if algorithm == "q_table" else target_SA)
    y_dqn, y_msbe = dqn_target(*common, target[[next_state]]), msbe_target(*common, table[[next_state]])
    terms = {
        "q_table": lambda: dqn_loss(q_B, y_dqn, huber=False),
        "rg": lambda: msbe_loss(q_B, y_msbe, huber=False),
        "cdqn": lambda: cdqn_loss(q_B, y_dqn, y_msbe, huber=False),
    }[algorithm]()
    terms.loss.mean().backward()
    optimizer.step()
    return table.detach().numpy(), bool(terms.on_dqn_branch)


def test_a_step_of_dcdqn_is_one_autograd_step_of_both_losses():
    mdp, rng, branches = cliff_walking(5), np.random.default_rng(8), set()
    for pair in np.tile(tabular.all_pairs(mdp), 3):
        state, action, reward, next_state, terminal = transition(mdp, *divmod(int(pair), 4))
        q_SA, target_SA, slow_SA, mean_SA = (random_table(mdp, rng) for _ in range(4))
        ends = torch.tensor([terminal]), DISCOUNT
        y_slow_B = dqn_target(torch.tensor([reward], dtype=torch.float64), *ends, torch.tensor(slow_SA)[[next_state]])
        mean = torch.tensor(mean_SA, requires_grad=True)
        v_B = action_value(mean[[state]], torch.tensor([action]))
        dqn_loss(v_B, y_slow_B, huber=False).loss.sum().backward()
        denoised = denoised_reward(torch.tensor([reward], dtype=torch.float64), v_B, y_slow_B).item()
        mdp.reward[state, action] = denoised
        expected_SA, on_dqn_branch = autograd_step(q_SA, target_SA, mdp, state, action, "cdqn")
        mdp.reward[state, action] = reward
        step = (state, action, reward, next_state, terminal, DISCOUNT, LEARNING_RATE, 0.1)
        expected_mean_SA = mean_SA - 0.1 * mean.grad.numpy()
        assert tabular.dcdqn_step(q_SA, target_SA, slow_SA, mean_SA, *step) == on_dqn_branch
        branches.add(on_dqn_branch)
        np.testing.assert_allclose(q_SA, expected_SA, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mean_SA, expected_mean_SA, rtol=0, atol=1e-12)
    assert branches == {True, False}


def test_from_samples_dcdqn_tells_two_chance_outcomes_apart_and_cdqn_makes_them_alike():
    """State 0 leads to 1 or 2 by chance, and both lead back; 1 pays 4 more. By that Q(1) is above Q(2)."""
    rng = np.random.default_rng(0)
    q_SA, target_SA, slow_SA, mean_SA, cdqn_SA, cdqn_target_SA = (np.zeros((3, 1)) for _ in range(6))
    for update, state in enumerate(rng.integers(3, size=40_000)):
        next_state = int(rng.integers(1, 3)) if state == 0 else 0
        rate = min(0.1, 500 / (update + 1))
        step = (state, 0, 4.0 if state == 1 else 0.0, next_state, False, DISCOUNT, rate)
        tabular.dcdqn_step(q_SA, target_SA, slow_SA, mean_SA, *step, rate)
        tabular.cdqn_step(cdqn_SA, cdqn_target_SA, *step)
        slow_SA += (q_SA - slow_SA) / 200
        if update % 20 == 0:
            target_SA, cdqn_target_SA = q_SA.copy(), cdqn_SA.copy()
    assert q_SA[1, 0] - q_SA[2, 0] == pytest.approx(4, abs=0.05)
    assert cdqn_SA[1, 0] - cdqn_SA[2, 0] < 3.7


@pytest.mark.parametrize("algorithm", ["q_table", "rg", "cdqn"])
def test_a_table_update_is_one_autograd_step_of_the_loss(algorithm):
    mdp, rng, branches = cliff_walking(5), np.random.default_rng(0), set()
    for pair in np.tile(tabular.all_pairs(mdp), 3):
        state, action = divmod(int(pair), 4)
        q_SA, target_SA = random_table(mdp, rng), random_table(mdp, rng)
        expected_SA, on_dqn_branch = autograd_step(q_SA, target_SA, mdp, state, action, algorithm)
        step = (*transition(mdp, state, action), DISCOUNT, LEARNING_RATE)
        if algorithm == "cdqn":
            assert tabular.cdqn_step(q_SA, target_SA, *step) == on_dqn_branch
            branches.add(on_dqn_branch)
        else:
            {"q_table": tabular.q_table_step, "rg": tabular.rg_step}[algorithm](q_SA, *step)
        np.testing.assert_allclose(q_SA, expected_SA, rtol=0, atol=1e-12)
    assert algorithm != "cdqn" or branches == {True, False}


def test_where_next_actions_tie_rg_moves_the_first_as_autograd_does():
    mdp = cliff_walking(5)
    q_SA = tabular.initial_q(mdp)
    expected_SA, _ = autograd_step(q_SA, q_SA, mdp, 6, 2, "rg")
    tabular.rg_step(q_SA, *transition(mdp, 6, 2), DISCOUNT, LEARNING_RATE)
    np.testing.assert_array_equal(q_SA, expected_SA)
    assert q_SA[7].tolist() == [0.45, 0, 0, 0]


def test_equal_next_actions_share_the_change_of_rg():
    """App. F: ΔQ(s′, a₁) = ΔQ(s′, a₂) = −γ/2 · ΔQ(s, a), so that the greedy policy at s′ stays what it is."""
    q_SA = np.array([[0.0, 0.0, 0.0], [1.0, 0.3, 1.0]])
    tabular.rg_split_step(q_SA, 0, 1, 2.0, 1, False, 0.9, 0.5)
    change = 0.5 * (2.0 + 0.9 * 1.0 - 0.0)
    np.testing.assert_allclose(q_SA, [[0, change, 0], [1 - 0.45 * change, 0.3, 1 - 0.45 * change]], rtol=1e-15)


def test_without_a_tie_the_equal_action_rule_changes_nothing():
    mdp, rng = cliff_walking(5), np.random.default_rng(1)
    for pair in tabular.all_pairs(mdp):
        plain_SA = random_table(mdp, rng)
        split_SA = plain_SA.copy()
        step = (*transition(mdp, *divmod(int(pair), 4)), DISCOUNT, LEARNING_RATE)
        tabular.rg_step(plain_SA, *step)
        tabular.rg_split_step(split_SA, *step)
        np.testing.assert_array_equal(plain_SA, split_SA)


def test_rg_keeps_the_sum_of_all_values_at_discount_1_except_at_terminal_steps():
    """Eq. 9 with γ = 1: Δ(Q_t + Q_{t+1}) = 0, which is why RG with γ = 1 does not learn."""
    mdp, rng = cliff_walking(10), np.random.default_rng(2)
    inner_P = np.flatnonzero(mdp.valid & ~mdp.terminal)
    q_SA = random_table(mdp, rng)
    before = q_SA[mdp.valid].sum()
    tabular.learn_pairs(q_SA, mdp, inner_P[rng.integers(inner_P.size, size=1000)], 1.0, 0.5, tabular.RG)
    assert q_SA[mdp.valid].sum() == pytest.approx(before, abs=1e-9)


def test_cdqn_with_the_target_equal_to_the_table_is_q_table_learning():
    """Both losses tie, and a tie takes DQN's."""
    mdp, rng = cliff_walking(6), np.random.default_rng(3)
    pair_T = tabular.all_pairs(mdp)[rng.integers(tabular.all_pairs(mdp).size, size=3000)]
    q_SA, cdqn_SA, target_SA = (tabular.initial_q(mdp) for _ in range(3))
    tabular.learn_pairs(q_SA, mdp, pair_T, DISCOUNT, LEARNING_RATE, tabular.Q_TABLE)
    tabular.learn_pairs_cdqn(cdqn_SA, target_SA, mdp, pair_T, DISCOUNT, LEARNING_RATE, 1, 0)
    np.testing.assert_array_equal(q_SA, cdqn_SA)


# Slow twins ---------------------------------------------------------------------------------------------


def slow_step(q_SA: list[list[float]], mdp: FiniteMDP, s: int, a: int, discount: float, rule: int) -> None:
    """The update rules word for word, on lists."""
    following = q_SA[mdp.next_state[s, a]]
    coefficient = 0.0 if mdp.terminal[s, a] else discount
    delta = mdp.reward[s, a] + coefficient * (0.0 if mdp.terminal[s, a] else max(following)) - q_SA[s][a]
    best = [k for k, value in enumerate(following) if max(following) - value < 1e-10]
    q_SA[s][a] += 0.5 * delta
    if rule != tabular.Q_TABLE and not mdp.terminal[s, a]:
        moved = best if rule == tabular.RG_SPLIT else best[:1]
        for k in moved:
            following[k] -= 0.5 * coefficient * delta / len(moved)


@pytest.mark.parametrize("rule", [tabular.Q_TABLE, tabular.RG, tabular.RG_SPLIT])
def test_learning_from_pairs_is_its_slow_twin(rule):
    mdp, rng = cliff_walking(6), np.random.default_rng(4)
    pair_T = tabular.all_pairs(mdp)[rng.integers(tabular.all_pairs(mdp).size, size=2000)]
    q_SA = tabular.initial_q(mdp)
    slow_SA = q_SA.tolist()
    tabular.learn_pairs(q_SA, mdp, pair_T, DISCOUNT, 0.5, rule)
    for pair in pair_T:
        slow_step(slow_SA, mdp, *divmod(int(pair), 4), DISCOUNT, rule)
    np.testing.assert_allclose(q_SA, slow_SA, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule", [tabular.Q_TABLE, tabular.RG, tabular.RG_SPLIT])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_learning_online_is_its_slow_twin(rule, epsilon):
    mdp, rng = one_way_cliff_walking(8), np.random.default_rng(5)
    uniform_T2 = rng.random((600, 2))
    q_SA, state = tabular.initial_q(mdp), mdp.start
    slow_SA = q_SA.tolist()
    end = tabular.learn_online(q_SA, mdp, mdp.start, uniform_T2, epsilon, 1.0, 0.5, rule)
    for explores, which in uniform_T2:
        largest = max(slow_SA[state])
        equal = [k for k, value in enumerate(slow_SA[state]) if largest - value < 1e-10]
        choices = [0, 1] if explores < epsilon else equal
        action = choices[int(which * len(choices))]
        slow_step(slow_SA, mdp, state, action, 1.0, rule)
        state = 0 if mdp.terminal[state, action] else int(mdp.next_state[state, action])
    assert end == state
    np.testing.assert_allclose(q_SA, slow_SA, rtol=0, atol=1e-9)


def test_cdqn_copies_its_target_table_after_every_period_however_the_pairs_are_cut():
    mdp, rng = cliff_walking(5), np.random.default_rng(6)
    pair_T = tabular.all_pairs(mdp)[rng.integers(tabular.all_pairs(mdp).size, size=500)]
    slow_SA, slow_target_SA = tabular.initial_q(mdp), tabular.initial_q(mdp)
    for t, pair in enumerate(pair_T, start=1):
        step = (*transition(mdp, *divmod(int(pair), 4)), DISCOUNT, LEARNING_RATE)
        tabular.cdqn_step(slow_SA, slow_target_SA, *step)
        if t % 37 == 0:
            slow_target_SA = slow_SA.copy()
    q_SA, target_SA = tabular.initial_q(mdp), tabular.initial_q(mdp)
    for begin, end in ((0, 10), (10, 200), (200, 500)):
        tabular.learn_pairs_cdqn(q_SA, target_SA, mdp, pair_T[begin:end], DISCOUNT, LEARNING_RATE, 37, begin)
    np.testing.assert_array_equal(q_SA, slow_SA)
    np.testing.assert_array_equal(target_SA, slow_target_SA)


# What a table is worth ----------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_msbe_of_the_optimal_table_is_zero(discount):
    mdp = cliff_walking(10)
    assert tabular.msbe_sum(tabular.optimal_q(mdp, discount), mdp, discount) < 1e-20


def test_the_msbe_and_the_distance_are_sums_over_all_pairs():
    mdp, rng = cliff_walking(5), np.random.default_rng(7)
    q_SA, other_SA = random_table(mdp, rng), random_table(mdp, rng)
    msbe = distance = 0.0
    for state in range(len(q_SA)):
        for action in range(4):
            if mdp.valid[state, action]:
                following = 0.0 if mdp.terminal[state, action] else q_SA[mdp.next_state[state, action]].max()
                msbe += (mdp.reward[state, action] + 0.9 * following - q_SA[state, action]) ** 2
                distance += (q_SA[state, action] - other_SA[state, action]) ** 2
    assert tabular.msbe_sum(q_SA, mdp, 0.9) == pytest.approx(msbe, rel=1e-12)
    assert tabular.squared_distance(q_SA, other_SA, mdp.valid) == pytest.approx(distance, rel=1e-12)


def test_equal_actions_are_chosen_equally_often_and_no_other_is():
    q_SA = np.array([[1.0, 3.0, -np.inf, 3.0, 3.0 + 1e-12]])
    chosen = [tabular.choose_equal(q_SA, 0, u) for u in (np.arange(300) + 0.5) / 300]
    assert np.bincount(chosen, minlength=5).tolist() == [0, 100, 0, 100, 100]


def test_an_action_that_does_not_exist_is_never_explored():
    valid_SA = np.array([[False, True, False, True]])
    chosen = [tabular.choose_valid(valid_SA, 0, u) for u in (np.arange(100) + 0.5) / 100]
    assert np.bincount(chosen, minlength=4).tolist() == [0, 50, 0, 50]


def test_value_iteration_says_when_there_is_no_optimum():
    forever = FiniteMDP(np.zeros((1, 1), np.int64), np.ones((1, 1)), np.zeros((1, 1), bool), np.ones((1, 1), bool), 0)
    with pytest.raises(ConfigError, match="is Q\\* finite"):
        tabular.optimal_q(forever, 1.0, sweeps=100)
