"""The interface of an algorithm: ours and a user's through the same learner, eager and compiled, saved and resumed."""

import json

import numpy as np
import pytest
import torch

import cdqn
import own_pieces
from cdqn.algorithms import ALGORITHMS, OF_THE_PAPER, find_algorithm
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.presets import make_config
from cdqn.storage import named_code
from helpers import assert_same_state

SMALL = {"hidden": (8,), "warmup_steps": 50, "batch_size": 8, "log_period_steps": 50, "memory_size": 500, "seed": 3}


def own_agent(algorithm=own_pieces.Expected, **settings):
    return cdqn.Agent("CartPole-v1", algorithm=algorithm, steps=300, **(SMALL | {"compile": "off"} | settings))


@pytest.fixture
def forgotten():
    """As in a process that has imported nothing of the user's."""
    known = dict(named_code._objects)
    named_code._objects.clear()
    yield
    named_code._objects.update(known)


def test_every_algorithm_says_what_it_is():
    assert list(ALGORITHMS) == ["cdqn", "dqn", "rg", "dcdqn"]
    assert OF_THE_PAPER == ("cdqn", "dqn", "rg")
    assert [algorithm.label for algorithm in ALGORITHMS.values()] == ["C-DQN", "DQN", "RG", "DC-DQN"]
    assert len({algorithm.colour for algorithm in ALGORITHMS.values()}) == 4
    assert [algorithm.has_target for algorithm in ALGORITHMS.values()] == [True, True, False, True]
    assert [algorithm.convergent for algorithm in ALGORITHMS.values()] == [True, False, True, True]


@pytest.mark.parametrize("name", ["cdqm", "", "CDQN"])
def test_unknown_algorithm_is_refused_with_the_names_there_are(name):
    with pytest.raises(ConfigError, match=r"must be one of cdqn, dqn, rg, dcdqn, or your own as module:Name"):
        Config(algorithm=name)


def test_class_that_is_no_algorithm_is_refused():
    with pytest.raises(ConfigError, match=r"a class derived from cdqn\.algorithms\.Algorithm"):
        own_agent(own_pieces.Abstract)


@pytest.mark.parametrize("algorithm", [own_pieces.Expected, own_pieces.Distributional])
@pytest.mark.parametrize("compile_setting", ["off", "on"])
def test_own_algorithm_learns_eager_and_compiled(algorithm, compile_setting, monkeypatch):
    from torch.fx.experimental.proxy_tensor import make_fx

    monkeypatch.setattr(
        "cdqn.training.learner.compile_for", lambda function, inputs: make_fx(function)(*(t.clone() for t in inputs))
    )
    agent = own_agent(algorithm, compile=compile_setting)
    before = agent.weights
    agent.learn(120)
    assert agent.trainer.learner.backend == {"off": "eager", "on": "compiled"}[compile_setting]
    assert not np.array_equal(agent.weights, before)
    assert np.isfinite(agent.weights).all()


def test_compiled_and_eager_agree_for_networks_with_step_sizes_of_their_own(monkeypatch):
    from torch.fx.experimental.proxy_tensor import make_fx

    monkeypatch.setattr(
        "cdqn.training.learner.compile_for", lambda function, inputs: make_fx(function)(*(t.clone() for t in inputs))
    )
    weights = [own_agent(compile=setting).learn(80).weights for setting in ("off", "on")]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4, atol=1e-6)


def test_each_network_has_its_own_step_size():
    """After one update of Adam every weight with a gradient has moved by about its step size."""
    agent = own_agent(learning_rate=1e-4, learning_rate_decay=1.0, adam_epsilon=1e-12, num_envs=1, n_step=1)
    learner = agent.trainer.learner
    before = {name: p.detach().clone() for name, p in learner.networks.named_parameters()}
    agent.learn(51)
    assert learner.updates == 1
    moved = {name: (p.detach() - before[name]).abs().max().item() for name, p in learner.networks.named_parameters()}
    for name, largest in moved.items():
        assert largest == pytest.approx(1e-3 if name.startswith("baseline") else 1e-4, rel=0.01), name


def test_own_statistics_reach_the_metrics():
    agent = own_agent().learn(200)
    rows = [row for row in agent.history if row["kind"] == "progress"]
    assert rows[-1]["baseline_error"] > 0
    assert "dqn_share" not in rows[-1]


def test_q_values_of_the_algorithm_are_what_is_acted_upon():
    agent = own_agent(own_pieces.Distributional).learn(100)
    observation = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    quantiles = agent.trainer.learner.networks["quantiles"](torch.from_numpy(observation)).view(20, 2, 8)
    assert np.array_equal(agent.predict(observation), quantiles.mean(2).argmax(1).numpy())


def test_settings_that_do_not_act_on_an_own_algorithm_are_refused():
    with pytest.raises(ConfigError, match="does not use value_transform: drop value_transform"):
        own_agent(own_pieces.Distributional, value_transform=True)


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (own_pieces.Forgetful, "KeyError: 'q'; without a network named q it needs a method q_values"),
        (own_pieces.Scalar, r"assess returns loss of shape \(\) for 2 samples: it must be \(2,\)"),
        (own_pieces.Silent, "leaves q_mean out of its statistics"),
        (own_pieces.Misspelled, "idle_settings of own_pieces:Misspelled names 'los': there is no such setting"),
    ],
)
def test_mistake_in_an_own_algorithm_is_named_before_training(algorithm, sentence):
    with pytest.raises(ConfigError, match=sentence):
        own_agent(algorithm)


def test_algorithm_that_branches_on_values_runs_eagerly_and_says_so():
    agent = own_agent(own_pieces.Branching, compile="on")
    with pytest.warns(UserWarning, match="cannot be compiled and runs eagerly"):
        agent.learn(60)
    assert agent.trainer.learner.backend == "eager"


def test_variant_begins_with_the_settings_of_its_parent():
    name = named_code.name_of(own_pieces.Expected)
    dqn, own = (make_config(algorithm, "classic-control") for algorithm in ("dqn", name))
    assert own.target_period_updates == dqn.target_period_updates == 100
    assert make_config("cdqn", "classic-control").target_period_updates == 20


def test_own_algorithm_resumes_exactly(tmp_path):
    straight = own_agent().learn(200)
    own_agent().learn(120).save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run").learn(80)
    assert_same_state(resumed.trainer.learner.state_dict(), straight.trainer.learner.state_dict())


@pytest.mark.usefixtures("forgotten")
def test_folder_never_imports_what_it_names(tmp_path, monkeypatch):
    module = tmp_path / "intruder.py"
    module.write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    cdqn.CDQN("CartPole-v1", steps=300, compile="off", **SMALL).learn(60).save(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    for piece in ("algorithm", "network", "replay", "exploration"):
        content["config"] |= {"algorithm": "cdqn", "network": None, "replay": "uniform", "exploration": "epsilon"}
        content["config"][piece] = "intruder:Thing"
        path.write_text(json.dumps(content))
        with pytest.raises(CheckpointError, match=r"code of module 'intruder'.*--allow-import intruder"):
            cdqn.load(tmp_path / "run")
        with pytest.raises(CheckpointError, match="intruder"):
            cdqn.load(tmp_path / "run", allow_import="another")


def test_own_algorithm_is_imported_where_it_is_allowed(tmp_path, forgotten):
    own_agent().learn(60).save(tmp_path / "run")
    named_code._objects.clear()
    with pytest.raises(CheckpointError, match=r"own_pieces:Expected.*allow_import='own_pieces'"):
        cdqn.load(tmp_path / "run")
    agent = cdqn.load(tmp_path / "run", allow_import="own_pieces")
    assert agent.config.algorithm_class is own_pieces.Expected
    assert find_algorithm("own_pieces:Expected") is own_pieces.Expected
