"""Noisy finite tasks, exactly, in float64: Theorem 2 for the denoised loss, and where each algorithm ends."""

import numpy as np
import pytest
import torch

from cdqn import losses
from cdqn.tasks.noisy import RULES, NoisyMDP, expected_loss, learn, optimal_q, random_task

DISCOUNT = 0.9
ROUNDING = 1e-12


@pytest.fixture(scope="module", params=range(3))
def task(request):
    return random_task(np.random.default_rng(request.param))


def table(task, seed):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=task.shape))


def loss_and_gradient(algorithm, task, q_SA, frozen_SA, double_q=False, slow_SA=None):
    q_SA = q_SA.clone().requires_grad_()
    loss = expected_loss(algorithm, task, q_SA, frozen_SA, DISCOUNT, double_q, slow_SA)
    return loss.item(), torch.autograd.grad(loss, q_SA)[0]


def mean_target(task, q_SA):
    """E[r + γ max Q(s′) | s, a]."""
    return (task.probability_SAN * (task.reward_SAN + DISCOUNT * q_SA.numpy().max(1))).sum(2)


def bellman_error(task, q_SA, fitted=lambda error_SA: error_SA):
    """½ E[(Q − E[r + γ max Q(s′)])²]: what is left of the residual's loss when the variance is taken away.

    With `fitted` only what it can see of the error.
    """
    return 0.5 * (fitted(q_SA.numpy() - mean_target(task, q_SA)) ** 2).mean()


@pytest.mark.parametrize("double_q", [False, True])
def test_a_copy_never_raises_the_denoised_loss(task, double_q):
    """Theorem 2 with noise: 200 copies of θ to θ̃ and θ̄, each after one to three more steps of descent."""
    rng = np.random.default_rng(1)
    q_SA = table(task, 2)
    frozen_SA = table(task, 3)
    falls = []
    for _ in range(200):
        for _ in range(int(rng.integers(1, 4))):
            q_SA = q_SA - 4.0 * loss_and_gradient("dcdqn", task, q_SA, frozen_SA, double_q)[1]
        before = expected_loss("dcdqn", task, q_SA, frozen_SA, DISCOUNT, double_q).item()
        frozen_SA = q_SA.clone()
        after = expected_loss("dcdqn", task, q_SA, frozen_SA, DISCOUNT, double_q).item()
        assert after <= before + ROUNDING
        assert after == pytest.approx(bellman_error(task, q_SA), abs=ROUNDING)
        falls.append(before - after)
    assert max(falls) > 1e-3, "no copy changed anything: the test would hold of any loss"


@pytest.mark.parametrize("double_q", [False, True])
def test_no_copy_raises_it_wherever_the_three_networks_are(task, double_q):
    """As the theorem has it, for any θ, θ̃ and θ̄: first a copy to θ̃, of which V may be anything; then one to θ̄."""
    for seed in range(100):
        q_SA, frozen_SA, slow_SA, error_SA = (table(task, [seed, number]) for number in range(4))

        def loss(*tables, v_error_SA=None, q_SA=q_SA):
            frozen_SA, slow_SA = tables
            settings = {"slow_SA": slow_SA, "v_error_SA": v_error_SA}
            return expected_loss("dcdqn", task, q_SA, frozen_SA, DISCOUNT, double_q, **settings).item()

        for wrong_SA in (None, error_SA):
            assert loss(q_SA, slow_SA, v_error_SA=wrong_SA) <= loss(frozen_SA, slow_SA, v_error_SA=wrong_SA) + ROUNDING
        assert loss(q_SA, q_SA) <= loss(q_SA, slow_SA) + ROUNDING
        assert loss(q_SA, q_SA) == pytest.approx(bellman_error(task, q_SA), abs=ROUNDING)


@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize(("beside", "functions"), [(False, 4), (False, 10), (True, 0), (True, 4), (True, 10)])
def test_v_need_only_fit_as_well_as_it_can(task, beside, functions, double_q):
    """With V the least-squares fit in a space of functions of (s, a), all ten of them, four or none, the loss is the
    sum of what V can see of the Bellman error and what it cannot see of how the TD error has changed since the slow
    copy; a copy to θ̄ takes the second away. V is that fit by itself, if Q is in the space, or the slow copy's value and
    the fit of its TD error, and then Q may be anything.
    """
    rng = np.random.default_rng(9)
    basis_PK = np.linalg.qr(rng.normal(size=(10, functions)))[0]

    def fitted(target_SA):
        return (basis_PK @ (basis_PK.T @ target_SA.ravel())).reshape(task.shape)

    def drawn():
        drawn_SA = 3 * rng.normal(size=task.shape)
        return torch.from_numpy(drawn_SA if beside else fitted(drawn_SA))

    def loss(q_SA, frozen_SA, slow_SA):
        mean_SA, base_SA = mean_target(task, slow_SA), slow_SA.numpy() if beside else 0
        error_SA = torch.from_numpy(base_SA + fitted(mean_SA - base_SA) - mean_SA)
        return expected_loss("dcdqn", task, q_SA, frozen_SA, DISCOUNT, double_q, slow_SA, error_SA).item()

    def unseen(q_SA, slow_SA):
        next_change_N = q_SA.numpy().max(1) - slow_SA.numpy().max(1)
        change_SAN = DISCOUNT * next_change_N - (q_SA - slow_SA).numpy()[..., None]
        mean_SA = (task.probability_SAN * change_SAN).sum(2)
        return 0.5 * (task.probability_SAN * (change_SAN - fitted(mean_SA)[..., None]) ** 2).sum(2).mean()

    falls = []
    for _ in range(200):
        q_SA, frozen_SA, slow_SA = drawn(), drawn(), drawn()
        before, between, after = loss(q_SA, frozen_SA, slow_SA), loss(q_SA, q_SA, slow_SA), loss(q_SA, q_SA, q_SA)
        assert between <= before + ROUNDING
        assert after <= between + ROUNDING
        assert after == pytest.approx(bellman_error(task, q_SA, fitted), abs=ROUNDING)
        assert between - after == pytest.approx(unseen(q_SA, slow_SA), abs=ROUNDING)
        falls.append(between - after)
    assert max(falls) > 1e-3, "no copy changed anything: the test would hold of any loss"


def test_a_q_that_v_cannot_fit_by_itself_is_not_covered(task):
    """With a V that is 0, a copy to θ̄ raises the loss now and then."""
    rng, risen = np.random.default_rng(10), 0
    for _ in range(100):
        q_SA, slow_SA = (torch.from_numpy(rng.normal(size=task.shape)) for _ in range(2))
        after, before = (
            expected_loss(
                "dcdqn",
                task,
                q_SA,
                q_SA,
                DISCOUNT,
                slow_SA=each_SA,
                v_error_SA=-torch.from_numpy(mean_target(task, each_SA)),
            ).item()
            for each_SA in (q_SA, slow_SA)
        )
        risen += after > before
    assert risen


def diverging_tasks():
    """States of one action and few features, on which fitted Q iteration diverges: w → 2w, and random ones."""
    always_on = np.array([[0.0, 1.0], [0.0, 1.0]])
    yield always_on, np.zeros(2), np.array([[1.0], [2.0]])
    rng, found = np.random.default_rng(11), 0
    while found < 4:
        task = random_task(rng, states=6, actions=1, outcomes=2)
        chance_SN, features_SK = task.probability_SAN[:, 0], rng.normal(size=(6, 3))
        repeated_KK = np.linalg.pinv(features_SK) @ (DISCOUNT * chance_SN @ features_SK)
        if np.abs(np.linalg.eigvals(repeated_KK)).max() > 1.02:
            found += 1
            yield chance_SN, rng.normal(size=6), features_SK


@pytest.mark.parametrize("sees_all", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_with_linear_q_the_denoised_residual_converges_where_dqn_diverges(number, sees_all):
    """The second term of the loss, minimised between moves of θ̄. If V has Q's features, the end is the solution of TD;
    if it can be any function of the state, the least squares of the Bellman error.
    """
    chance_SN, reward_S, features_SK = (torch.from_numpy(array) for array in list(diverging_tasks())[number])
    state_B, next_B = chance_SN.nonzero(as_tuple=True)
    going_on_B = torch.zeros(len(state_B), dtype=torch.bool)
    weight_B = chance_SN[state_B, next_B]
    states, size = features_SK.shape
    seen_SK = torch.eye(states, dtype=torch.float64) if sees_all else features_SK
    fit_SS = seen_SK @ torch.linalg.pinv(seen_SK)

    def loss(w_K, slow_K):
        slow_B = losses.dqn_target(reward_S[state_B], going_on_B, DISCOUNT, (features_SK @ slow_K)[next_B, None])
        v_S = fit_SS @ torch.zeros_like(reward_S).index_add(0, state_B, weight_B * slow_B)
        reward_B = losses.denoised_reward(reward_S[state_B], v_S[state_B], slow_B)
        q_S = features_SK @ w_K
        target_B = losses.msbe_target(reward_B, going_on_B, DISCOUNT, q_S[next_B, None])
        return losses.msbe_loss(q_S[state_B], target_B, weight_B, huber=False).loss.sum()

    def gradient(w_K, slow_K):
        w_K = w_K.clone().requires_grad_()
        return torch.autograd.grad(loss(w_K, slow_K), w_K)[0]

    zero_K, eye_KK = torch.zeros(size, dtype=torch.float64), torch.eye(size, dtype=torch.float64)
    constant_K = gradient(zero_K, zero_K)
    by_w_KK = torch.stack([gradient(unit_K, zero_K) - constant_K for unit_K in eye_KK], 1)
    by_slow_KK = torch.stack([gradient(zero_K, unit_K) - constant_K for unit_K in eye_KK], 1)
    next_from_KK = -torch.linalg.solve(by_w_KK, by_slow_KK)  # how the minimum depends on the slow copy
    eigenvalues = torch.linalg.eigvals(next_from_KK)
    assert eigenvalues.imag.abs().max() < 1e-9
    assert eigenvalues.real.min() > -1e-9
    assert eigenvalues.real.max() < 1
    end_K = -torch.linalg.solve(by_w_KK + by_slow_KK, constant_K)
    change_SK = features_SK - DISCOUNT * chance_SN @ features_SK
    error_S = change_SK @ end_K - reward_S
    tested_SK = change_SK if sees_all else features_SK
    assert (tested_SK.T @ error_S).abs().max() < 1e-9, "another solution"


def test_only_the_denoised_loss_ends_at_the_solution_of_the_bellman_equation(task):
    best_SA = optimal_q(task, DISCOUNT)
    ends = {name: learn(name, task, table(task, 4).numpy(), DISCOUNT, 20_000, 0.3) for name in RULES}
    distance = {name: np.abs(end_SA - best_SA).max() for name, end_SA in ends.items()}
    assert distance["dcdqn"] < 1e-8
    assert distance["cdqn"] > 0.1
    assert distance["rg"] > 0.1


@pytest.mark.parametrize("algorithm", RULES)
def test_without_noise_all_end_there(algorithm):
    rng = np.random.default_rng(5)
    task = random_task(rng, outcomes=1)
    end_SA = learn(algorithm, task, rng.normal(size=task.shape), DISCOUNT, 60_000, 0.3)
    np.testing.assert_allclose(end_SA, optimal_q(task, DISCOUNT), rtol=0, atol=1e-8)


@pytest.mark.parametrize("algorithm", RULES)
def test_compiled_descent_follows_the_gradient_of_the_losses(algorithm, task):
    start_SA = table(task, 6)
    found_SA = learn(algorithm, task, start_SA.numpy(), DISCOUNT, 7, 0.2, target_period=3, slow_copy_updates=4)
    q_SA, frozen_SA, slow_SA, pairs = start_SA, start_SA, start_SA, start_SA.numel()
    for sweep in range(7):
        frozen_SA = q_SA if sweep % 3 == 0 else frozen_SA
        q_SA = q_SA - 0.2 * pairs * loss_and_gradient(algorithm, task, q_SA, frozen_SA, slow_SA=slow_SA)[1]
        slow_SA = slow_SA + (q_SA - slow_SA) / 4
    np.testing.assert_allclose(found_SA, q_SA.numpy(), rtol=0, atol=1e-12)


def test_value_iteration_by_hand():
    """One state; an action that pays 1 or 3 with equal chances, another that pays 1: 2/(1 − γ) and 1 + γ · that."""
    task = NoisyMDP(np.ones((1, 2, 1)), np.array([[[2.0], [1.0]]]))
    np.testing.assert_allclose(optimal_q(task, 0.5), [[4.0, 3.0]])


def test_random_task_is_one():
    task = random_task(np.random.default_rng(0), states=6, actions=3, outcomes=4)
    np.testing.assert_allclose(task.probability_SAN.sum(2), 1)
    assert ((task.probability_SAN > 0).sum(2) == 4).all()
