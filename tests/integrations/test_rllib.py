"""C-DQN inside RLlib: the loss and the copies in one process, then training on a small cluster of its own."""

import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.dqn.dqn import DQNConfig
from ray.rllib.algorithms.dqn.dqn_learner import QF_NEXT_PREDS, QF_PREDS, QF_TARGET_NEXT_PREDS
from ray.rllib.core.columns import Columns
from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

from cdqn import losses
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations.rllib import CDQN, CDQNConfig

MODULE = "default_policy"


def learner_of(config, **training):
    """A learner in this process, with small networks."""
    config = config.environment("CartPole-v1").training(**training).rl_module(model_config={"fcnet_hiddens": [8]})
    learner = config.debugging(seed=0).build_learner(env=gym.make("CartPole-v1"))
    learner.build()
    return learner


def batch_of(rows=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {
        Columns.OBS: torch.randn(rows, 4, generator=generator),
        Columns.NEXT_OBS: torch.randn(rows, 4, generator=generator),
        Columns.ACTIONS: torch.randint(2, (rows,), generator=generator),
        Columns.REWARDS: torch.randn(rows, generator=generator),
        Columns.TERMINATEDS: torch.rand(rows, generator=generator) < 0.2,
        "weights": torch.rand(rows, generator=generator),
        "n_step": torch.randint(1, 4, (rows,), generator=generator).float(),
    }


def outputs_of(learner, batch):
    module = learner.module[MODULE]
    with torch.no_grad():  # a target network of other weights
        for parameter in module._target_encoder.parameters():
            parameter.add_(0.3)
    return module.forward_train(batch)


def loss_of(learner, batch, outputs):
    config = learner.config.get_config_for_module(MODULE)
    return learner.compute_loss_for_module(module_id=MODULE, config=config, batch=batch, fwd_out=outputs)


@pytest.mark.parametrize("function", ["huber", "mse"])
@pytest.mark.parametrize("loss", ["cdqn", "rg"])
def test_loss_is_ours_with_each_rows_own_discount(loss, function):
    learner, batch = learner_of(CDQNConfig(), loss=loss, td_error_loss_fn=function, gamma=0.9), batch_of()
    outputs = outputs_of(learner, batch)
    found = loss_of(learner, batch, outputs)
    q_B = losses.action_value(outputs[QF_PREDS], batch[Columns.ACTIONS])
    facts = (batch[Columns.REWARDS], batch[Columns.TERMINATEDS], 0.9 ** batch["n_step"])
    msbe_B = losses.msbe_target(*facts, outputs[QF_NEXT_PREDS])
    dqn_B = losses.dqn_target(*facts, outputs[QF_TARGET_NEXT_PREDS], outputs[QF_NEXT_PREDS].detach())
    settings = {"weights": batch["weights"], "huber": function == "huber"}
    rg = losses.msbe_loss(q_B, msbe_B, **settings)
    terms = rg if loss == "rg" else losses.cdqn_loss(q_B, dqn_B, msbe_B, **settings)
    torch.testing.assert_close(found, terms.loss.mean() * (1 if function == "huber" else 2))
    parameters = [parameter for parameter in learner.module[MODULE].parameters() if parameter.requires_grad]
    mine, true = (
        torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        for value in (found, terms.loss.mean() * (1 if function == "huber" else 2))
    )
    for here, there in zip(mine, true, strict=True):
        assert (here is None) == (there is None)
        if here is not None:
            torch.testing.assert_close(here, there)
    if loss == "cdqn":
        assert 0 < terms.on_dqn_branch.float().mean() < 1, "both branches must be seen for the test to mean anything"


def test_with_dqns_loss_it_is_the_hosts():
    ours, theirs, batch = learner_of(CDQNConfig(), loss="dqn"), learner_of(DQNConfig()), batch_of()
    theirs.module[MODULE].load_state_dict(ours.module[MODULE].state_dict())
    assert torch.equal(loss_of(ours, batch, outputs_of(ours, batch)), loss_of(theirs, batch, outputs_of(theirs, batch)))


def test_padding_of_sequences_does_not_count():
    learner, batch = learner_of(CDQNConfig(), loss="cdqn", gamma=0.9), batch_of()
    outputs = outputs_of(learner, batch)
    some = {name: column[:40].reshape(8, 5, *column.shape[1:]) for name, column in batch.items()}
    folded = {name: value[:40].reshape(8, 5, -1) for name, value in outputs.items() if value.shape[:1] == (64,)}
    mask = torch.ones(8, 5, dtype=torch.bool)
    mask[:, 3:] = False
    found = loss_of(learner, some | {Columns.LOSS_MASK: mask}, folded)
    rows = mask.flatten().nonzero().flatten()
    kept = {name: value[rows] for name, value in outputs.items() if value.shape[:1] == (64,)}
    torch.testing.assert_close(found, loss_of(learner, {name: column[rows] for name, column in batch.items()}, kept))


@pytest.mark.parametrize(("loss", "is_of_before"), [("cdqn", True), ("dqn", False)])
def test_target_network_gets_the_weights_from_before_the_step(loss, is_of_before):
    learner = learner_of(CDQNConfig(), loss=loss, target_network_update_freq=100)
    module = learner.module[MODULE]
    online, target = (
        lambda net=net: torch.cat([parameter.detach().flatten().clone() for parameter in net.parameters()])
        for net in module.get_target_network_pairs()[0]
    )
    before = online()
    for now, copied in ((50, False), (150, True)):
        step_from, old_target = online(), target()
        learner.apply_gradients({name: torch.ones_like(value) for name, value in learner._params.items()})
        stepped = online()
        assert not torch.equal(stepped, step_from)
        learner.after_gradient_based_update(timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: now})
        assert torch.equal(online(), stepped), "the online network keeps its step"
        expected = (step_from if is_of_before else stepped) if copied else old_target
        assert torch.equal(target(), expected)
    assert not torch.equal(target(), before)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "c51"}, "loss is 'c51': choose one of 'cdqn', 'dqn', 'rg'"),
        ({"double_q": False}, "loss cdqn needs double_q=True"),
        ({"num_atoms": 10}, "num_atoms is 10: loss cdqn has no distributions"),
    ],
)
def test_what_cannot_work_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        CDQNConfig().environment("CartPole-v1").training(**settings).validate()
    stack = {"enable_rl_module_and_learner": False, "enable_env_runner_and_connector_v2": False}
    config = CDQNConfig().api_stack(**stack).training(replay_buffer_config={"type": "MultiAgentReplayBuffer"})
    with pytest.raises(ConfigError, match="new API stack"):
        config.validate()


def test_discount_is_found_from_random_episodes():
    config = CDQNConfig().environment("CartPole-v1").calibrate(episodes=5)
    assert config.gamma == 0.99  # a reward at every step: the shortest horizon there is
    rare = CDQNConfig().environment("MountainCar-v0").calibrate(episodes=2, horizon_multiplier=1000)
    assert rare.gamma == pytest.approx(1 - 1 / 1000)


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.rllib.algorithms.dqn.dqn", None)
    monkeypatch.delitem(sys.modules, "cdqn.integrations.rllib")
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[rllib\]'"):
        importlib.import_module("cdqn.integrations.rllib")


def on_a_cluster(**training):
    """Few and large parcels: a round of sampling and an update take a tenth of a second each, whatever their size."""
    settings = {"lr": 2e-3, "train_batch_size": 128, "training_intensity": 16, "n_step": 3}
    settings |= {"num_steps_sampled_before_learning_starts": 500, "target_network_update_freq": 200}
    return (
        CDQNConfig()
        .environment("CartPole-v1")
        .training(epsilon=[(0, 1.0), (2500, 0.05)], **settings | training)
        .env_runners(num_env_runners=2, rollout_fragment_length=125)
        .learners(num_learners=1)
        .fault_tolerance(restart_failed_env_runners=True)
        .rl_module(model_config={"fcnet_hiddens": [64, 64]})
        .reporting(min_sample_timesteps_per_iteration=500)
        .debugging(seed=0)
    )


def weights_of(algorithm):
    state = algorithm.learner_group.get_weights()[MODULE]
    return np.concatenate([np.ravel(value) for _, value in sorted(state.items())])


@pytest.mark.slow
def test_cartpole_is_learned_although_an_env_runner_is_killed_and_the_algorithm_is_restored(small_ray, tmp_path):
    """Two env runners, one remote learner. Random play earns about 22."""
    algorithm = on_a_cluster().build_algo()
    algorithm.train()
    found = algorithm.train()
    statistics = found["learners"][MODULE]
    assert 0 < statistics["dqn_share"] < 1
    assert {"loss_dqn", "loss_msbe", "qf_loss"} <= set(statistics)
    small_ray.kill(algorithm.env_runner_group._worker_manager.actors()[1])
    algorithm.save_to_path(tmp_path / "saved")
    weights = weights_of(algorithm)
    returns = [0.0]
    while len(returns) < 10 and max(returns) < 40:
        returns.append(algorithm.train()["env_runners"].get("episode_return_mean", 0.0))
    assert max(returns) >= 40, returns
    assert not np.array_equal(weights_of(algorithm), weights)
    algorithm.restore_from_path(tmp_path / "saved")
    np.testing.assert_array_equal(weights_of(algorithm), weights)
    algorithm.stop()


@pytest.mark.slow
def test_ray_tune_finds_a_target_period(small_ray, tmp_path):
    from ray import tune

    config = on_a_cluster(
        target_network_update_freq=tune.grid_search([100, 400]), num_steps_sampled_before_learning_starts=100
    )
    config = config.env_runners(num_env_runners=0).learners(num_learners=0)
    tuner = tune.Tuner(
        CDQN,
        param_space=config.reporting(min_sample_timesteps_per_iteration=200),
        run_config=tune.RunConfig(stop={"training_iteration": 1}, storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
    assert not results.errors
    best = results.get_best_result(f"learners/{MODULE}/loss_msbe", "min")
    assert best.config["target_network_update_freq"] in (100, 400)
    assert {result.config["target_network_update_freq"] for result in results} == {100, 400}
