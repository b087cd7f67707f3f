"""C-DQN as a loss module of TorchRL: the host's own numbers with DQN's loss, ours with the others."""

import importlib
import sys

import pytest
import torch
from tensordict import TensorDict
from torchrl.data import Categorical, LazyTensorStorage, OneHot, TensorDictReplayBuffer
from torchrl.modules import MLP, QValueActor
from torchrl.objectives import DQNLoss, HardUpdate

from cdqn import losses
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations.torchrl import CDQNLoss

GAMMA = 0.9
SPECS = {"one-hot": OneHot(3), "categorical": Categorical(3)}


def actor_and_data(spec, seed=0, rows=64, steps=False):
    torch.manual_seed(seed)
    actor = QValueActor(MLP(in_features=4, out_features=3, num_cells=[16]), in_keys=["observation"], spec=spec)
    end = torch.rand(rows, 1) < 0.2
    data = TensorDict(
        {
            "observation": torch.randn(rows, 4),
            "action": spec.rand([rows]),
            ("next", "observation"): torch.randn(rows, 4),
            ("next", "done"): end | (torch.rand(rows, 1) < 0.2),
            ("next", "terminated"): end,
            ("next", "reward"): torch.randn(rows, 1),
        },
        [rows],
    )
    if steps:
        data["steps_to_next_obs"] = torch.randint(1, 4, (rows, 1))
    return actor, data


def module_of(kind, actor, **settings):
    """A loss whose target network is another than the online network, the same for each of them."""
    module = kind(actor, **settings)
    module.make_value_estimator(gamma=GAMMA)
    torch.manual_seed(9)
    for parameter in module.target_value_network_params.values(True, True):
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module


def gradient(module, data):
    module.zero_grad()
    found = module(data)
    found["loss"].backward()
    return found, torch.cat([parameter.grad.flatten() for parameter in module.parameters()])


@pytest.mark.parametrize("steps", [False, True], ids=["one step", "several steps"])
@pytest.mark.parametrize("double", [False, True], ids=["plain", "double"])
@pytest.mark.parametrize("function", ["l2", "smooth_l1"])
@pytest.mark.parametrize("spec", SPECS)
def test_with_dqns_loss_it_is_the_hosts(spec, function, double, steps):
    actor, data = actor_and_data(SPECS[spec], steps=steps)
    settings = {"loss_function": function, "double_dqn": double}
    theirs, their_gradient = gradient(module_of(DQNLoss, actor, **settings), rows := data.clone())
    ours, our_gradient = gradient(module_of(CDQNLoss, actor, loss="dqn", **settings), mine := data.clone())
    torch.testing.assert_close(ours["loss"], theirs["loss"])
    torch.testing.assert_close(our_gradient, their_gradient)
    torch.testing.assert_close(mine["td_error"], rows["td_error"])


@pytest.mark.parametrize("loss", ["cdqn", "rg"])
def test_other_losses_are_ours(loss):
    actor, data = actor_and_data(SPECS["categorical"])
    module = module_of(CDQNLoss, actor, loss=loss, loss_function="smooth_l1", double_dqn=True)
    found, its_gradient = gradient(module, data)
    network, frozen = actor.module[0].module, module.target_value_network_params
    for name, value in module.value_network_params.flatten_keys(".").items():
        actor.get_parameter(name).data.copy_(value.data)
    q_BA, next_q_BA = network(data["observation"]), network(data["next", "observation"])
    with frozen.data.to_module(module.value_network):
        frozen_BA = module.value_network(data["next"].select("observation"))["action_value"]
    facts = (data["next", "reward"].flatten(), data["next", "terminated"].flatten(), GAMMA)
    q_B = losses.action_value(q_BA, data["action"])
    dqn_B = losses.dqn_target(*facts, frozen_BA, next_q_BA.detach())
    msbe_B = losses.msbe_target(*facts, next_q_BA)
    terms = losses.msbe_loss(q_B, msbe_B) if loss == "rg" else losses.cdqn_loss(q_B, dqn_B, msbe_B)
    network.zero_grad()
    terms.loss.mean().backward()
    torch.testing.assert_close(found["loss"], terms.loss.mean())
    torch.testing.assert_close(its_gradient, torch.cat([p.grad.flatten() for p in network.parameters()]))
    assert found["dqn_share"] == terms.on_dqn_branch.float().mean()
    torch.testing.assert_close(data["td_error"].flatten(), terms.td_error_abs.square())
    if loss == "cdqn":
        assert 0 < found["dqn_share"] < 1, "both branches must be seen for the test to mean anything"


def test_it_learns_from_the_hosts_replay_with_its_target_updater():
    actor, data = actor_and_data(SPECS["one-hot"], rows=32)
    module = CDQNLoss(actor, double_dqn=True)
    module.make_value_estimator(gamma=GAMMA)
    updater = HardUpdate(module, value_network_update_interval=10)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(32), batch_size=32)
    buffer.extend(data)
    optimizer = torch.optim.Adam(module.parameters(), 1e-2)
    found = []
    for _ in range(500):
        batch = buffer.sample()
        output = module(batch)
        optimizer.zero_grad()
        output["loss"].backward()
        optimizer.step()
        updater.step()
        buffer.update_tensordict_priority(batch)  # heeded by a prioritized sampler, where the host has one built
        found.append(float(output["squared_td_error"]))
    assert sum(found[-20:]) < 0.5 * sum(found[:20])


def test_weights_and_reduction_are_the_hosts():
    actor, data = actor_and_data(SPECS["categorical"])
    per_row = module_of(CDQNLoss, actor, reduction="none")(data.clone())["loss"]
    assert per_row.shape == (64,)
    weight = torch.rand(64)
    weighted = module_of(CDQNLoss, actor, reduction="none")(data.clone().set("priority_weight", weight))["loss"]
    torch.testing.assert_close(weighted, per_row * weight)


def test_several_dimensions_are_one_batch():
    actor, data = actor_and_data(SPECS["categorical"])
    module = module_of(CDQNLoss, actor)
    flat = module(data.clone())
    folded = module(rows := data.clone().reshape(8, 8))
    torch.testing.assert_close(folded["loss"], flat["loss"])
    assert rows["td_error"].shape == (8, 8, 1)


def test_keyword_arguments_as_in_the_host():
    actor, data = actor_and_data(SPECS["categorical"])
    module = module_of(CDQNLoss, actor)
    found = module(
        observation=data["observation"],
        action=data["action"],
        next_observation=data["next", "observation"],
        next_reward=data["next", "reward"],
        next_done=data["next", "done"],
        next_terminated=data["next", "terminated"],
    )
    torch.testing.assert_close(found, module(data)["loss"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "c51"}, "loss is 'c51': choose one of 'cdqn', 'dqn', 'rg'"),
        ({"delay_value": False}, "leave delay_value True"),
        ({"loss_function": "l1"}, "loss_function is 'l1': choose 'l2' or 'smooth_l1'"),
    ],
)
def test_what_cannot_work_is_refused(settings, words):
    actor, _ = actor_and_data(SPECS["categorical"])
    with pytest.raises(ConfigError, match=words):
        CDQNLoss(actor, **settings)


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchrl.objectives", None)
    monkeypatch.delitem(sys.modules, "cdqn.integrations.torchrl")
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[torchrl\]'"):
        importlib.import_module("cdqn.integrations.torchrl")
