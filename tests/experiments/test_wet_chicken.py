"""Wet chicken, App. A.1: each batched update against autograd on `losses.py`, exact resume, and small claims."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from cdqn import losses
from cdqn.errors import CheckpointError, ConfigError
from cdqn.experiments import wet_chicken
from cdqn.experiments.fitted_q import Data, FittedQ, StackedMLP, draw_parameters
from cdqn.experiments.request import Request
from cdqn.experiments.wet_chicken import Setting, average_reward, generator, make_data, train_group
from cdqn.experiments.wet_chicken_claims import EXCESS, Curves, judge, last_part, rows

GAMMA, BATCH, SAMPLES, REPEATS = 0.97, 10, 40, 3
WIDTHS = (1, 16, 16, 16, 3)
SMALL = Setting(
    repeats=3,
    epochs=6,
    transitions=200,
    batch_size=20,
    hidden=(16, 16),
    evaluation_period_epochs=2,
    evaluation_trials=5,
    evaluation_steps=20,
    checkpoint_period_epochs=2,
)


def make_learner(algorithm, dtype=torch.float64, seed=0):
    rng = np.random.default_rng(seed)
    network = StackedMLP([draw_parameters(rng, WIDTHS) for _ in range(REPEATS)], dtype)
    x = torch.from_numpy(rng.random((REPEATS, SAMPLES + 1))).to(dtype)
    action = torch.from_numpy(rng.integers(3, size=(REPEATS, SAMPLES)))
    following = x[:, 1:].contiguous()
    return FittedQ(algorithm, network, Data(x[:, :-1].contiguous(), action, following, following), GAMMA, BATCH)


def module_of(network, repeat):
    """One of the networks as an ordinary module."""
    layers = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layer = nn.Linear(weight.shape[2], weight.shape[1], dtype=weight.dtype)
        layer.weight.data, layer.bias.data = weight[repeat].clone(), bias[repeat].clone()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def slow_epochs(algorithm, module, data, repeat, orders, rates):
    """The slow twin: one repeat, autograd, a target network that is copied as in the authors' code."""
    target = copy.deepcopy(module)
    adam = torch.optim.Adam(module.parameters(), eps=1e-8)
    on_dqn = []
    for order_RN, rate in zip(orders, rates, strict=True):
        adam.param_groups[0]["lr"] = rate
        at_start = copy.deepcopy(module)
        for number, index_B in enumerate(order_RN[repeat].split(BATCH)):
            if number == 1:
                target = at_start
            state, action, reward, following = (column[repeat][index_B] for column in data)
            facts = (reward, torch.zeros(BATCH, dtype=torch.bool), GAMMA)
            q_B = losses.action_value(module(state.unsqueeze(1)), action)
            y_dqn_B = losses.dqn_target(*facts, target(following.unsqueeze(1)))
            y_msbe_B = losses.msbe_target(*facts, module(following.unsqueeze(1)))
            terms = {
                "dqn": losses.dqn_loss(q_B, y_dqn_B, huber=False),
                "rg": losses.msbe_loss(q_B, y_msbe_B, huber=False),
                "cdqn": losses.cdqn_loss(q_B, y_dqn_B, y_msbe_B, huber=False),
            }[algorithm]
            adam.zero_grad()
            terms.loss.mean().backward()
            adam.step()
            on_dqn.append(terms.on_dqn_branch.double().mean().item())
    return np.mean(on_dqn)


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn", "rg"])
def test_epochs_equal_autograd_on_the_losses_with_torch_adam(algorithm):
    learner = make_learner(algorithm)
    modules = [module_of(learner.network, repeat) for repeat in range(REPEATS)]
    torch.manual_seed(0)
    orders = [torch.stack([torch.randperm(SAMPLES) for _ in range(REPEATS)]) for _ in range(3)]
    rates = [1e-2, 1e-2, 1e-3]
    for order_RN, rate in zip(orders, rates, strict=True):
        learner.epoch(order_RN, rate)
    for repeat, module in enumerate(modules):
        share = slow_epochs(algorithm, module, learner.data, repeat, orders, rates)
        if algorithm == "cdqn":
            assert 0.05 < share < 0.95  # both branches are under test
        found = module_of(learner.network, repeat)
        for mine, theirs in zip(found.parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_cdqn_with_every_sample_on_the_dqn_branch_is_dqn():
    """No row of s′ is left to go back through."""
    learners = [make_learner(algorithm) for algorithm in ("cdqn", "dqn")]
    order_RN = torch.stack([torch.randperm(SAMPLES) for _ in range(REPEATS)])
    for learner in learners:
        learner.data = learner.data._replace(reward_RN=learner.data.reward_RN + 100)
        learner._next_values = lambda: torch.full((REPEATS, SAMPLES), 1e4, dtype=torch.float64)
        learner._next_value_RN = learner._next_values()
        learner.epoch(order_RN, 1e-3)
    torch.testing.assert_close(learners[0].network.theta, learners[1].network.theta, rtol=1e-12, atol=1e-14)


def test_repeats_do_not_touch_each_other():
    """A repeat alone gives what it gives beside others, bit for bit: groups may be cut in any way."""
    setting = dataclasses.replace(SMALL, epochs=2)
    together = train_group(setting, "cdqn", [0, 1, 2], 0, None)
    alone = train_group(setting, "cdqn", [1], 0, None)
    np.testing.assert_array_equal(together.q_ERXA[:, 1], alone.q_ERXA[:, 0])
    np.testing.assert_array_equal(together.reward_ER[:, 1], alone.reward_ER[:, 0])


def test_weights_and_biases_are_drawn_as_by_the_authors():
    weight_1, bias_1, weight_2, bias_2, *_ = draw_parameters(np.random.default_rng(0), (1, 128, 128, 3))
    assert weight_2.shape == (128, 128)
    for values, bound in ((weight_1, 6**0.5), (bias_1, 1.0), (weight_2, (6 / 128) ** 0.5), (bias_2, 128**-0.5)):
        assert 0.9 * bound < np.abs(values).max() <= bound
        assert np.std(values) == pytest.approx(bound / 3**0.5, rel=0.2)


def test_transitions_of_a_repeat_are_a_walk_from_zero_and_the_same_for_every_algorithm():
    data = make_data(SMALL, [0, 1], seed=4)
    assert (data.state_RN[:, 0] == 0).all()
    torch.testing.assert_close(data.next_state_RN[:, :-1], data.state_RN[:, 1:])
    torch.testing.assert_close(data.reward_RN, data.next_state_RN)
    moved = (data.next_state_RN - data.state_RN) * 20 - (data.action_RN - 1)
    inside = (data.next_state_RN > 0) & (data.state_RN > 0)
    assert moved[inside].abs().max() <= 2.5001
    assert set(data.action_RN.unique().tolist()) == {0, 1, 2}
    assert not torch.equal(data.state_RN[0], data.state_RN[1])
    torch.testing.assert_close(make_data(SMALL, [1], seed=4).state_RN[0], data.state_RN[1])


def test_learning_rate_falls_where_the_paper_says():
    setting = Setting()
    rates = [setting.rate(epoch) for epoch in (1, 999, 1000, 1499, 1500, 2000)]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


def test_killed_task_goes_on_bit_for_bit(tmp_path):
    for algorithm in ("cdqn", "dqn", "rg"):
        whole = train_group(SMALL, algorithm, [0, 1], 0, None)

        def kill(epoch):
            if epoch == 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train_group(SMALL, algorithm, [0, 1], 0, tmp_path / algorithm, kill)
        told = []
        resumed = train_group(SMALL, algorithm, [0, 1], 0, tmp_path / algorithm, told.append)
        assert told[0] == 5  # from the checkpoint of epoch 4
        np.testing.assert_array_equal(resumed.reward_ER, whole.reward_ER)
        np.testing.assert_array_equal(resumed.q_ERXA, whole.q_ERXA)
        assert not np.isnan(whole.q_ERXA).any()
        again = train_group(SMALL, algorithm, [0, 1], 0, tmp_path / algorithm)
        np.testing.assert_array_equal(again.q_ERXA, whole.q_ERXA)


def test_checkpoint_of_other_settings_is_refused(tmp_path):
    train_group(SMALL, "rg", [0], 0, tmp_path)
    with pytest.raises(CheckpointError, match="other settings"):
        train_group(dataclasses.replace(SMALL, gamma=0.9), "rg", [0], 0, tmp_path)


def test_broken_settings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="epochs is 0"):
        Setting(epochs=0)
    with pytest.raises(ConfigError, match="whole number of batches"):
        train_group(dataclasses.replace(SMALL, batch_size=30), "dqn", [0], 0, tmp_path)


def test_policy_from_the_table_earns_what_the_network_earns():
    """The table has a point every 0.005: against asking the network at every step, with the same noise."""
    network = StackedMLP([draw_parameters(generator(0, 9, repeat), (1, 32, 32, 3)) for repeat in range(2)])
    grid = torch.arange(4000).div(4000).expand(2, -1).contiguous()
    found = average_reward(network.q_values(grid).argmax(2).numpy(), 100, 50, [generator(1), generator(2)])
    for repeat in range(2):
        noise = generator(1 + repeat).uniform(-2.5, 2.5, (100, 50))
        x, total = np.zeros(50), 0.0
        for row in noise:
            state = torch.from_numpy((x / 20).astype(np.float32)).expand(2, -1).contiguous()
            x = wet_chicken.next_position(x, network.q_values(state)[repeat].argmax(1).numpy(), row)
            total += x.mean()
        assert found[repeat] == pytest.approx(total / 100, abs=0.1)


def test_policy_that_always_holds_stays_near_the_start_and_one_that_drifts_falls():
    hold, drift = np.ones((1, 4000), np.int64), np.full((1, 4000), 2)
    turn = np.where(np.arange(4000) < 3200, 2, 0)[None]  # forward below 16, back above: near the best
    earned = [average_reward(policy, 300, 200, [generator(0)])[0] for policy in (hold, drift, turn)]
    assert earned[0] < earned[1] < earned[2]
    assert earned[2] == pytest.approx(14.6, abs=0.5)


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


def test_whole_experiment_in_processes_depends_on_the_seed_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(wet_chicken.SCALES, "smoke", dataclasses.replace(SMALL, repeats=4))
    told = []
    one = wet_chicken.reproduce(Request("smoke", 0, 2, tmp_path / "a", on_progress=lambda *both: told.append(both)))
    assert told[-1] == (36, 36)  # 3 algorithms, 2 groups of two repeats, 6 epochs
    again = wet_chicken.reproduce(Request("smoke", 0, 1, tmp_path / "b"))
    assert one == again
    assert one.name == "fig8"
    assert {row.quantity for row in one.rows} == {"average_reward", "q_distance"}
    first = wet_chicken.reproduce(Request("smoke", 0, 1, tmp_path / "b", runs=1))
    assert first.rows[-1].setting == "1 repeats"
    assert "mean of 1 run, seed 0, scale smoke" in first.about
    assert all(row.value == pytest.approx(0) for row in one.rows if row.quantity == "q_distance" and row.step == 0)


@pytest.mark.slow
def test_dqn_learns_the_river_and_leaves_rg_behind():
    """A small version of the figure's left half, in some ten seconds."""
    setting = Setting(repeats=2, epochs=60, transitions=4_000, batch_size=100, hidden=(64, 64))
    reward = {name: train_group(setting, name, [0, 1], 0, None).reward_ER[-4:].mean() for name in ("dqn", "rg")}
    assert reward["dqn"] > 13.5
    assert reward["dqn"] > reward["rg"] + 1
