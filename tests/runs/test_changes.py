"""Training that goes on: schedules that have ended or run anew, and another step size."""

import json
import warnings

import pytest

import cdqn
from cdqn.cli.main import main
from cdqn.errors import ConfigError
from cdqn.runs.changes import change_setting, settle_schedules
from cdqn.training.events import Progress
from run_files import assert_same_end, one_line

SMALL = {"hidden": (8,), "warmup_steps": 40, "batch_size": 8, "log_period_steps": 50, "compile": "off"}
SMALL |= {"memory_size": 200, "update_period_steps": 4, "num_envs": 2, "learning_rate": 1e-3, "evaluation_episodes": 1}


class Killed(Exception):  # noqa: N818
    """The run ends on the spot."""


def kill_at(step):
    def callback(event, agent):
        if isinstance(event, Progress) and event.step >= step:
            raise Killed

    return callback


def agent_of(**settings):
    return cdqn.CDQN("CartPole-v1", **(SMALL | settings))


def now(agent):
    trainer = agent.trainer
    return trainer.epsilon(), trainer.beta(), trainer.learning_rate()


def test_second_learn_continues_and_a_warning_says_what_has_ended():
    agent = agent_of().learn(100)
    with pytest.warns(
        UserWarning, match=r"ended at step 100: ε stays at 0\.01, the step size at 0\.0001; schedules='re"
    ):
        agent.learn(50)
    assert now(agent) == pytest.approx((0.01, 1.0, 1e-4))


@pytest.mark.parametrize("schedules", ["continue", "restart"])
def test_who_says_what_is_wanted_is_not_warned(schedules):
    agent = agent_of().learn(100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.learn(50, schedules=schedules)


def test_learn_within_the_budget_is_not_warned():
    agent = agent_of(steps=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.learn(100).learn(100)


def test_restarted_schedules_run_over_the_new_steps_without_a_random_phase():
    agent = agent_of().learn(100)
    settle_schedules(agent, 300, "restart")
    assert now(agent) == pytest.approx((1.0, 0.4, 1e-3))
    agent.learn(20, schedules="continue")
    assert now(agent) == pytest.approx((0.1, 0.46, 1e-3 * (1 - 0.9 * 0.1))), "ε is at its middle after a tenth"
    agent.learn(180, schedules="continue")
    assert now(agent) == pytest.approx((0.01, 1.0, 1e-4))


def test_restart_before_the_warmup_has_ended_keeps_its_random_phase():
    with pytest.warns(UserWarning, match="nothing is learned yet"):
        agent = agent_of(warmup_steps=60).learn(40)
    settle_schedules(agent, 240, "restart")
    assert agent.trainer.epsilon() == 1.0
    agent.learn(18, schedules="continue")
    assert agent.trainer.epsilon() == 1.0


def test_other_words_are_refused():
    with pytest.raises(ConfigError, match="schedules is 'anew': it must be 'continue' or 'restart'"):
        agent_of().learn(100, schedules="anew")


def test_restarted_run_is_saved_and_loaded_bit_for_bit(tmp_path):
    straight = agent_of().learn(100).learn(100, schedules="restart")
    half = agent_of().learn(100)
    settle_schedules(half, 200, "restart")
    half.learn(52, schedules="continue").save(tmp_path / "run")
    resumed = cdqn.load(tmp_path / "run")
    assert now(resumed) == now(half)
    assert resumed.learn(48, schedules="continue").weights.tobytes() == straight.weights.tobytes()


@pytest.mark.parametrize("kill", [150, 250])
def test_killed_run_with_restarted_schedules_and_another_rate_resumes_to_the_same_end(kill, tmp_path):
    """At 150 no checkpoint had come since the restart but the one that the restart itself makes."""
    for name in ("whole", "killed"):
        agent_of(checkpoint_period_steps=100).learn(100, run_folder=tmp_path / name)
    changes = {"steps": 300, "schedules": "restart", "learning_rate": 5e-3}
    cdqn.resume_run(tmp_path / "whole", **changes)
    with pytest.raises(Killed):
        cdqn.resume_run(tmp_path / "killed", callbacks=[kill_at(kill)], **changes)
    assert cdqn.resume_run(tmp_path / "killed").steps == 300, "the run knows how far it was to go"
    assert_same_end(tmp_path / "killed", tmp_path / "whole")
    loaded = cdqn.load(tmp_path / "whole")
    assert (loaded.config.learning_rate, loaded.trainer.learning_rate()) == (5e-3, pytest.approx(5e-4))
    said = [row["message"] for row in loaded.history if row["kind"] == "warning" and row["topic"] == "resumed"]
    assert said == [
        "ε, β and the step size run anew, up to step 300",
        "learning_rate is 0.005 from here on, and was 0.001",
    ]


def test_same_rate_as_before_changes_nothing(tmp_path):
    agent_of().learn(100, run_folder=tmp_path / "run")
    before = (tmp_path / "run" / "config.json").read_bytes()
    assert change_setting(tmp_path / "run", "learning_rate", 1e-3) == []
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    assert change_setting(tmp_path / "run", "learning_rate", 2e-3)
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert (config["learning_rate"], config["env_id"]) == (2e-3, "CartPole-v1")


def test_command_restarts_schedules_and_takes_another_rate(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cdqn.cli.train.conclude", lambda run, outcome: 0)  # no picture
    run = str(tmp_path / "run")
    agent_of(checkpoint_period_steps=100).learn(100, run_folder=run)
    assert main(["resume", run, "--steps", "150"]) == 0
    assert "--schedules restart, runs them anew" in capsys.readouterr().out.replace("\n", " ")
    assert main(["resume", run, "--steps", "250", "--schedules", "restart", "--learning-rate", "0.002"]) == 0
    agent = cdqn.load(run)
    assert (agent.steps, agent.trainer.schedule_start, agent.config.learning_rate) == (250, 150, 0.002)
    capsys.readouterr()
    assert main(["resume", run, "--steps", "300", "--learning-rate", "-1"]) == 1
    assert "learning_rate is -1.0" in one_line(capsys)
    assert cdqn.load(run).config.learning_rate == 0.002
