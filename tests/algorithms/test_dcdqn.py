"""DC-DQN on a table, by hand: C-DQN's loss with targets that V has freed of noise, and V's own."""

import numpy as np
import pytest
import torch
from tables import algorithm, batch, table

import cdqn
from cdqn.algorithms import CDQN, DCDQN
from cdqn.config import Config
from cdqn.errors import ConfigError
from cdqn.nn.networks import parameter_count
from cdqn.training.build import first_networks
from helpers import random_batch

SAMPLES = batch([0, 1, 2], [0, 1, 0], [1.0, 0.0, 2.0], [1, 2, 0], [False, False, True])
ONLINE = [[1.0, 0.0], [3.0, 2.0], [0.0, 5.0]]
FROZEN = [[9.0, 9.0], [8.0, 0.0], [0.0, 4.0]]
SLOW = [[1.0, 3.0], [2.0, 6.0], [2.0, 0.0]]
AVERAGE = [[3.0, 0.0], [0.0, 1.5], [3.0, 0.0]]
V = [[2.0, 0.0], [0.0, 1.5], [5.0, 0.0]]
# γ ½: y of DQN 5, 2, 2; of the residual 2.5, 2.5, 2; of the slow copy 4, 1, 2. V's average less the latter is −1, 0.5,
# 1, which makes the targets 4, 2.5, 3 and 1.5, 3, 3. δ_D = −3, −0.5, −3; δ_M = −0.5, −1, −3. The first is DQN's branch,
# the second the residual's, the third a tie. V itself is −2, 0.5, 3 away from the slow copy's y.


def networks(v=V):
    (online, q), (second, values) = table(ONLINE), table(v)
    return online | {"v": second["q"]}, q, values


def assess(online, samples=SAMPLES, average=AVERAGE, **settings):
    copies = {"q": FROZEN, "q_slow": SLOW} | ({} if average is None else {"v_slow": average})
    target = {name: table(rows)[0]["q"] for name, rows in copies.items()}
    return algorithm(DCDQN, **settings).assess(samples, online, target, 0.5)


def test_loss_is_that_of_the_larger_difference_to_the_average_of_v_and_v_regresses_the_target():
    online, _, _ = networks()
    found = assess(online)
    fit = torch.tensor([2.0, 0.5, 3.0]) ** 2 / 2
    torch.testing.assert_close(found.loss, torch.tensor([4.5, 0.5, 4.5]) + fit)
    assert found.td_error_abs.tolist() == [3.0, 1.0, 3.0]
    assert found.statistics["dqn_share"].item() == pytest.approx(2 / 3)
    assert found.statistics["noise"].item() == pytest.approx((1 + 0.25 + 1) / 3)
    assert found.statistics["v_lag"].item() == pytest.approx((1 - 0.5 - 1) / 3)
    assert found.statistics["loss"].item() == pytest.approx((9 + 1 + 9) / 3)


def test_gradient_of_q_flows_to_the_next_state_and_not_into_v():
    online, q, values = networks()
    assess(online).loss.sum().backward()
    expected = torch.zeros(3, 2)
    expected[0, 0] = -3.0  # DQN's branch: nothing flows into state 1
    expected[1, 1] = -1.0  # the residual's: through D into state 2 as well
    expected[2, 1] = 0.5 * 1.0
    expected[2, 0] = -3.0
    torch.testing.assert_close(q.grad, expected)
    regression = torch.zeros(3, 2)
    regression[0, 0], regression[1, 1], regression[2, 0] = -2.0, 0.5, 3.0  # V − y of the slow copy, nothing of Q's loss
    torch.testing.assert_close(values.grad, regression)


def test_v_is_fitted_by_the_squared_error_also_where_the_loss_of_q_is_hubers():
    """V has to be the mean of its target. Fitted by Huber's loss it is something like the median, and Q diverges."""
    online, _, values = networks([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assess(online, loss="huber").loss.sum().backward()
    assert values.grad.tolist() == [[-4.0, 0.0], [0.0, -1.0], [-2.0, 0.0]]  # less the target, however large


def test_with_an_exact_v_it_is_cdqn_where_nothing_is_random():
    exact = [[4.0, 0.0], [0.0, 1.0], [2.0, 0.0]]  # y of the slow copy itself
    online, _, _ = networks(exact)
    target, _ = table(FROZEN)
    ours, theirs = assess(online, average=exact), algorithm(CDQN).assess(SAMPLES, online, target, 0.5)
    torch.testing.assert_close(ours.loss, theirs.loss)
    torch.testing.assert_close(ours.td_error_abs, theirs.td_error_abs)


@pytest.mark.parametrize(("hidden", "step_size", "average_updates"), [((), 1.0, None), ((8,), 3.0, 100)])
def test_v_is_quick_and_averaged_where_it_is_no_table(hidden, step_size, average_updates):
    settings = {"hidden": hidden, "dueling": bool(hidden)}
    agent = cdqn.Agent("FrozenLake-v1", algorithm="dcdqn", **settings)
    v = first_networks(agent.spec, agent.config, DCDQN(agent.config))["v"]
    assert (v.learning_rate_factor, v.slow_copy_updates) == (step_size, average_updates)


def test_without_an_average_the_loss_takes_v_itself():
    online, q, values = networks(AVERAGE)
    averaged, plain = assess(online), assess(online, average=None)
    torch.testing.assert_close(averaged.loss, plain.loss)
    plain.loss.sum().backward()
    assert q.grad[2, 0] == -3.0
    assert values.grad[2, 0] == 1.0, "the gradient of Q's loss flows into V"


def test_weights_act_on_both_parts():
    weighted = SAMPLES._replace(weight=torch.tensor([0.0, 2.0, 0.0]))
    online, _, _ = networks()
    loss = assess(online, weighted).loss
    torch.testing.assert_close(loss, torch.tensor([0.0, 2 * (0.5 + 0.125), 0.0]))


def test_value_transform_is_refused():
    with pytest.raises(ConfigError, match="dcdqn does not use value_transform"):
        Config(algorithm="dcdqn", value_transform=True)


def test_an_exact_copy_at_every_update_is_refused_as_for_cdqn():
    with pytest.raises(ConfigError, match="becomes DQN"):
        Config(algorithm="dcdqn", target_copy="exact", target_period_updates=1)


def test_it_begins_with_the_defaults_of_cdqn():
    agents = [cdqn.Agent("CartPole-v1", algorithm=name) for name in ("cdqn", "dcdqn")]
    settings = [{**agent.config.to_json(), "algorithm": None} for agent in agents]
    assert settings[0] == settings[1]


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize(
    ("env", "compile"), [("CartPole-v1", "off"), ("CartPole-v1", "on"), ("MinAtar/Breakout-v1", "off")]
)
def test_resumed_run_is_the_uninterrupted_one(env, compile, tmp_path):
    small = {"hidden": (8,), "warmup_steps": 60, "memory_size": 200, "steps": 300, "compile": compile}
    small |= {"log_period_steps": 50, "seed": 3}
    whole = cdqn.Agent(env, algorithm="dcdqn", **small).learn(300)
    cdqn.Agent(env, algorithm="dcdqn", **small).learn(152).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run").learn(148)
    assert (whole.weights == resumed.weights).all()
    assert (whole.trainer.learner.slow == resumed.trainer.learner.slow).all()
    last, resumed_last = ([row["v_lag"] for row in agent.history if "v_lag" in row][-1] for agent in (whole, resumed))
    assert last == resumed_last != 0


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("compile", ["off", "on"])
def test_gradient_of_v_does_not_shorten_the_step_of_q(compile):
    learner = cdqn.DCDQN("CartPole-v1", hidden=(8,), gradient_clip_norm=1e-3, compile=compile).trainer.learner
    learner.choose_backend(1)
    norm = learner.update(random_batch(np.random.default_rng(0))).statistics["gradient_norm"]
    parts = learner.first_moment.split([parameter_count(network) for network in learner.networks.values()])
    assert [10 * part.norm().item() for part in parts] == pytest.approx([1e-3, 1e-3], rel=1e-2)
    assert norm > 0.1
