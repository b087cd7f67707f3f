"""C-DQN inside Stable-Baselines3: the host's own DQN step for step, or with another loss and nothing else."""

import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import SimpleMultiObsEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

from cdqn import losses
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations.sb3 import CDQN
from cdqn.integrations.sb3_replay import PrioritizedReplayBuffer

SMALL = {"learning_starts": 50, "target_update_interval": 60, "buffer_size": 300, "seed": 3, "learning_rate": 1e-3}
SMALL |= {"policy_kwargs": {"net_arch": [16]}}


def weights(model):
    return torch.cat([value.flatten() for value in model.policy.state_dict().values()])


def train_for(model, steps=400):
    return model.learn(steps)


@pytest.mark.parametrize(
    "more",
    [{}, {"n_steps": 3}, {"tau": 0.3}, {"train_freq": (1, "episode"), "gradient_steps": -1}],
    ids=["plain", "three steps", "soft copies", "by episode"],
)
def test_with_dqns_loss_it_is_the_hosts_dqn_step_for_step(more):
    theirs = train_for(DQN("MlpPolicy", "CartPole-v1", **SMALL, **more))
    ours = train_for(CDQN("MlpPolicy", "CartPole-v1", loss="dqn", **SMALL, **more))
    assert theirs._n_updates == ours._n_updates > 50
    assert torch.equal(weights(theirs), weights(ours))
    name = "train/loss"
    assert theirs.logger.name_to_value[name] == pytest.approx(ours.logger.name_to_value[name], rel=1e-6)


@pytest.mark.parametrize("loss", ["cdqn", "rg"])
def test_gradient_is_that_of_our_loss(loss):
    model = train_for(CDQN("MlpPolicy", "CartPole-v1", loss=loss, double_q=loss == "cdqn", **SMALL))
    data = model.replay_buffer.sample(64)
    model.policy.optimizer.zero_grad()
    model._loss_of(data).loss.mean().backward()
    found = [parameter.grad.clone() for parameter in model.q_net.parameters()]
    model.policy.optimizer.zero_grad()
    q_B = losses.action_value(model.q_net(data.observations), data.actions.flatten())
    next_q_BA = model.q_net(data.next_observations)
    facts = (data.rewards.flatten(), data.dones.flatten().bool(), model.gamma)
    msbe_B = losses.msbe_target(*facts, next_q_BA)
    dqn_B = losses.dqn_target(*facts, model.q_net_target(data.next_observations), next_q_BA.detach())
    terms = losses.msbe_loss(q_B, msbe_B) if loss == "rg" else losses.cdqn_loss(q_B, dqn_B, msbe_B)
    terms.loss.mean().backward()
    for parameter, gradient in zip(model.q_net.parameters(), found, strict=True):
        torch.testing.assert_close(gradient, parameter.grad)
    if loss == "cdqn":
        assert 0 < terms.on_dqn_branch.float().mean() < 1, "both branches must be seen for the test to mean anything"


def test_loss_and_double_q_matter_and_are_logged():
    fast = SMALL | {"learning_rate": 1e-2}  # beyond |δ| = 1 the Huber loss does not tell two targets apart
    ends = [
        weights(train_for(CDQN("MlpPolicy", "CartPole-v1", loss=loss, double_q=double_q, **fast)))
        for loss, double_q in [("dqn", False), ("dqn", True), ("cdqn", False), ("cdqn", True), ("rg", False)]
    ]
    for number, end in enumerate(ends):
        assert not any(torch.equal(end, other) for other in ends[:number]), number
    model = train_for(CDQN("MlpPolicy", "CartPole-v1", **SMALL))
    assert 0 <= model.logger.name_to_value["train/dqn_share"] <= 1
    assert model.logger.name_to_value["train/squared_td_error"] > 0


def test_what_is_saved_goes_on_with_its_loss(tmp_path):
    model = train_for(CDQN("MlpPolicy", "CartPole-v1", loss="rg", **SMALL))
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = CDQN.load(tmp_path / "model", env=gym.make("CartPole-v1"))
    loaded.load_replay_buffer(tmp_path / "buffer")
    assert (loaded.loss, loaded.double_q) == ("rg", False)
    assert torch.equal(weights(loaded), weights(model))
    assert loaded.learn(100, reset_num_timesteps=False)._n_updates > model._n_updates


def test_host_features_keep_working(tmp_path):
    """Several environments, VecNormalize, an evaluation callback, evaluate_policy; and dict observations."""
    env = VecNormalize(make_vec_env("CartPole-v1", 3, seed=0))
    seen = EvalCallback(VecNormalize(make_vec_env("CartPole-v1", 1), training=False), eval_freq=50, verbose=0)
    model = CDQN("MlpPolicy", env, prioritized=True, double_q=True, **SMALL).learn(400, callback=seen)
    assert np.isfinite(seen.best_mean_reward)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=2, warn=False)
    assert mean > 0
    several = CDQN("MultiInputPolicy", SimpleMultiObsEnv(random_start=False), **SMALL | {"policy_kwargs": {}})
    assert train_for(several, 120)._n_updates > 0


def test_prioritized_replay_learns_its_priorities():
    model = train_for(CDQN("MlpPolicy", "CartPole-v1", prioritized=True, **SMALL))
    assert isinstance(model.replay_buffer, PrioritizedReplayBuffer)
    leaves = model.replay_buffer._order.state_dict()["priorities"]
    assert len(np.unique(leaves)) > 30
    assert 0.4 < model.replay_buffer.beta <= 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "ddqn"}, "loss is 'ddqn': choose one of 'cdqn', 'dqn', 'rg'"),
        ({"loss": "rg", "double_q": True}, "double_q acts on the target network, which RG does not have"),
        ({"prioritized": True, "n_steps": 3}, "leave n_steps at 1"),
        ({"prioritized": True, "optimize_memory_usage": True}, "optimize_memory_usage has no prioritized replay"),
    ],
)
def test_what_cannot_work_is_refused(settings, words):
    if "optimize_memory_usage" in settings:
        settings |= {"replay_buffer_kwargs": {"handle_timeout_termination": False}}
    with pytest.raises(ConfigError, match=words):
        CDQN("MlpPolicy", "CartPole-v1", **SMALL | settings)


def test_copies_before_every_update_are_warned_of():
    with pytest.warns(UserWarning, match="target_update_interval 4 copies the network before every update"):
        CDQN("MlpPolicy", "CartPole-v1", **SMALL | {"target_update_interval": 4})


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "cdqn.integrations.sb3")
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[sb3\]'"):
        importlib.import_module("cdqn.integrations.sb3")
