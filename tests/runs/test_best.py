"""The policy of the best evaluation: kept as weights, exact after a kill, and for playing alone."""

import json

import numpy as np
import pytest

import cdqn
import own_pieces
from cdqn.agent import Agent
from cdqn.cli.main import main
from cdqn.errors import CheckpointError, ConfigError
from cdqn.training.events import EvaluationResult, Progress
from helpers import WalkEnv

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off"}
SMALL |= {"memory_size": 200, "update_period_steps": 4, "num_envs": 2}
PERIODIC = {"evaluation_period_steps": 50, "checkpoint_period_steps": 100, "evaluation_episodes": 2}


class Killed(Exception):  # noqa: N818
    """The run ends on the spot."""


def agent_of(**settings):
    return cdqn.CDQN("CartPole-v1", steps=300, **(SMALL | PERIODIC | settings))


def scripted(monkeypatch, means):
    """Evaluations whose mean is a function of the step."""

    def evaluate(self, episodes, **_):
        return EvaluationResult(np.full(2, float(means[self.steps])), np.ones(2), 0.0)

    monkeypatch.setattr(Agent, "evaluate", evaluate)


def files_in(run):
    return sorted(path.name for path in (run / "best").iterdir())


MEANS = {50: 1, 100: 7, 150: 3, 200: 7, 250: 5, 300: 6}


def test_policy_of_the_best_evaluation_is_kept_of_equals_the_first(monkeypatch, tmp_path):
    scripted(monkeypatch, MEANS)
    at_100 = []

    def keep(event, agent):
        if isinstance(event, Progress) and event.step == 100:
            at_100.append(agent.weights)

    agent_of().learn(300, keep, run_folder=tmp_path / "run")
    best = cdqn.load(tmp_path / "run", best=True)
    assert best.steps == 100
    assert best.weights.tobytes() == at_100[0].tobytes()
    assert files_in(tmp_path / "run") == ["step-000000100.safetensors"]
    size = sum(path.stat().st_size for path in (tmp_path / "run" / "best").iterdir())
    assert size < 1000 + 4 * len(best.weights), "weights alone"


def test_final_evaluation_can_be_the_best(monkeypatch, tmp_path):
    scripted(monkeypatch, MEANS | {300: 8})
    trained = agent_of().learn(300, run_folder=tmp_path / "run")
    best = cdqn.load(tmp_path / "run", best=True)
    assert (best.steps, best.weights.tobytes()) == (300, trained.weights.tobytes())


@pytest.mark.parametrize("kill_at", [50, 150, 250])
def test_killed_and_resumed_run_has_the_same_best(kill_at, monkeypatch, tmp_path):
    scripted(monkeypatch, MEANS)
    agent_of().learn(300, run_folder=tmp_path / "whole")

    def kill(event, agent):
        if isinstance(event, Progress) and event.step >= kill_at:
            raise Killed

    with pytest.raises(Killed):
        agent_of().learn(300, kill, run_folder=tmp_path / "run")
    cdqn.resume_run(tmp_path / "run")
    assert files_in(tmp_path / "run") == files_in(tmp_path / "whole")
    one, other = (cdqn.load(tmp_path / name, best=True) for name in ("run", "whole"))
    assert (one.steps, one.weights.tobytes()) == (other.steps, other.weights.tobytes())


def test_best_of_a_killed_run_is_the_one_of_its_checkpoint(monkeypatch, tmp_path):
    """Killed at 250 after a better evaluation at 200: the checkpoint of 100 still finds its own best."""
    scripted(monkeypatch, MEANS | {200: 9})

    def kill(event, agent):
        if isinstance(event, Progress) and event.step >= 250:
            raise Killed

    with pytest.raises(Killed):
        agent_of(checkpoint_period_steps=150).learn(300, kill, run_folder=tmp_path / "run")
    assert cdqn.load(tmp_path / "run", best=True).steps == 100


def test_agent_with_the_best_policy_plays_and_does_not_learn(monkeypatch, tmp_path):
    agent_of().learn(300, run_folder=tmp_path / "run")
    best = cdqn.load(tmp_path / "run", best=True)
    means = [row["mean"] for row in cdqn.load(tmp_path / "run").history if row["kind"] == "evaluation"]
    assert best.evaluate(2).mean == max(means), "the same episodes as in training, with the same policy"
    with pytest.raises(ConfigError, match="best=True, to play"):
        best.learn(100)


def test_buffers_of_a_network_are_part_of_its_policy(tmp_path):
    settings = {name: value for name, value in (SMALL | PERIODIC).items() if name not in ("hidden", "num_envs")}
    agent = cdqn.CDQN(WalkEnv(), steps=200, network=own_pieces.NormalizedNetwork, **settings)
    agent.learn(200, run_folder=tmp_path / "run")
    best = cdqn.load(tmp_path / "run", env=WalkEnv(), best=True)
    mean = max(row["mean"] for row in agent.history if row["kind"] == "evaluation")
    assert best.evaluate(2).mean == mean
    counted = {name: buffer for name, buffer in best.trainer.learner.networks.named_buffers() if "tracked" in name}
    assert all(int(buffer) > 0 for buffer in counted.values())
    assert counted


def test_run_without_periodic_evaluations_keeps_none_and_says_so(tmp_path, capsys):
    agent_of(evaluation_period_steps=None).learn(100, run_folder=tmp_path / "run")
    assert not (tmp_path / "run" / "best").exists()
    with pytest.raises(CheckpointError, match="has kept no best policy: train with --evaluation-period-steps"):
        cdqn.load(tmp_path / "run", best=True)


def test_command_evaluates_the_best_policy(tmp_path, capsys):
    agent_of().learn(300, run_folder=tmp_path / "run")
    best = cdqn.load(tmp_path / "run", best=True)
    assert main(["evaluate", str(tmp_path / "run"), "--best", "--episodes", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["step"], result["returns"]) == (best.steps, best.evaluate(3).returns.tolist())
    assert main(["evaluate", str(tmp_path / "run"), "--best", "--protocol", "paper"]) == 1
    assert "drop --best" in capsys.readouterr().err
