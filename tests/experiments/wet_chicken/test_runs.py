"""Wet chicken, App. A.1: its data, exact resume, and a small version of the figure."""

import dataclasses

import numpy as np
import pytest
import torch

from cdqn.envs.wet_chicken import next_position
from cdqn.errors import CheckpointError, ConfigError
from cdqn.experiments.request import Request
from cdqn.experiments.wet_chicken import runs as module
from cdqn.experiments.wet_chicken.fitted_q import StackedMLP, draw_parameters
from cdqn.experiments.wet_chicken.runs import WetChickenSetting, average_reward, generator, make_data, train_group
from cdqn.runs.workers.local import LocalPool

SMALL = WetChickenSetting(
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


def test_repeats_do_not_touch_each_other():
    """A repeat alone gives what it gives beside others, bit for bit: groups may be cut in any way."""
    setting = dataclasses.replace(SMALL, epochs=2)
    together = train_group(setting, "cdqn", [0, 1, 2], 0, None)
    alone = train_group(setting, "cdqn", [1], 0, None)
    np.testing.assert_array_equal(together.q_ERXA[:, 1], alone.q_ERXA[:, 0])
    np.testing.assert_array_equal(together.reward_ER[:, 1], alone.reward_ER[:, 0])


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
    setting = WetChickenSetting()
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
        WetChickenSetting(epochs=0)
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
            x = next_position(x, network.q_values(state)[repeat].argmax(1).numpy(), row)
            total += x.mean()
        assert found[repeat] == pytest.approx(total / 100, abs=0.1)


def test_policy_that_always_holds_stays_near_the_start_and_one_that_drifts_falls():
    hold, drift = np.ones((1, 4000), np.int64), np.full((1, 4000), 2)
    turn = np.where(np.arange(4000) < 3200, 2, 0)[None]  # forward below 16, back above: near the best
    earned = [average_reward(policy, 300, 200, [generator(0)])[0] for policy in (hold, drift, turn)]
    assert earned[0] < earned[1] < earned[2]
    assert earned[2] == pytest.approx(14.6, abs=0.5)


def test_whole_experiment_in_processes_depends_on_the_seed_alone(tmp_path, monkeypatch):
    monkeypatch.setitem(module.SCALES, "smoke", dataclasses.replace(SMALL, repeats=4))
    told = []
    one = module.reproduce(
        Request("smoke", 0, LocalPool(2), tmp_path / "a", on_progress=lambda *both: told.append(both))
    )
    assert told[-1] == (36, 36)  # 3 algorithms, 2 groups of two repeats, 6 epochs
    again = module.reproduce(Request("smoke", 0, LocalPool(1), tmp_path / "b"))
    assert one[:4] == again[:4]  # name, about, rows, claims; the authors' curves have NaN for errors
    assert one.name == "fig8"
    assert {row.quantity for row in one.rows} == {"average_reward", "q_distance"}
    first = module.reproduce(Request("smoke", 0, LocalPool(1), tmp_path / "b", runs=1))
    assert first.rows[-1].setting == "1 repeats"
    assert "mean of 1 run, seed 0, scale smoke" in first.about
    assert all(row.value == pytest.approx(0) for row in one.rows if row.quantity == "q_distance" and row.step == 0)


@pytest.mark.slow
def test_dqn_learns_the_river_and_leaves_rg_behind():
    """A small version of the figure's left half, in some ten seconds."""
    setting = WetChickenSetting(repeats=2, epochs=60, transitions=4_000, batch_size=100, hidden=(64, 64))
    reward = {name: train_group(setting, name, [0, 1], 0, None).reward_ER[-4:].mean() for name in ("dqn", "rg")}
    assert reward["dqn"] > 13.5
    assert reward["dqn"] > reward["rg"] + 1
