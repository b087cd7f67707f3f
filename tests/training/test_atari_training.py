"""Training on real games, with a network that is small enough for tests."""

import json
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import torch

import cdqn
from cdqn.cli.main import main
from cdqn.envs import make_vec
from cdqn.errors import ConfigError
from cdqn.presets import PRESETS
from cdqn.replay import Prefetcher, PrioritizedReplay
from cdqn.replay.frames import FrameStore
from cdqn.training.build import memory_estimate, readable_bytes
from cdqn.training.events import Calibrated

TINY = {
    "preset": "paper-5.1",
    "seed": 3,
    "steps": 2_000,
    "warmup_steps": 160,
    "frame_size": (40, 36),
    "channels": (4, 4, 4),
    "hidden": (16,),
    "memory_size": 300,
    "log_period_steps": 100,
    "target_period_updates": 20,
}
FLAGS = (
    *("--preset", "paper-5.1", "--seed", "3", "--steps", "2000", "--warmup-steps", "160", "--frame-size", "40", "36"),
    *("--channels", "4", "4", "4", "--hidden", "16", "--memory-size", "300", "--log-period-steps", "100"),
    *("--target-period-updates", "20", "--evaluation-episodes", "1", "--time-limit-steps", "200"),
    *("--checkpoint-period-steps", "200"),
)


def rows(run, kind):
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]


def without_clock(values):
    return [{k: v for k, v in row.items() if k != "steps_per_second"} for row in values]


@pytest.mark.parametrize(("game", "algorithm"), [("Breakout", "cdqn"), ("ALE/Pong-v5", "cdqn"), ("Breakout", "dcdqn")])
def test_saved_agent_goes_on_bit_for_bit_in_the_middle_of_games(game, algorithm, tmp_path):
    agent = cdqn.Agent(game, algorithm=algorithm, **TINY)
    agent.learn(300)
    agent.save(tmp_path / "a")
    other = cdqn.load(tmp_path / "a")
    agent.learn(200)
    other.learn(200)
    np.testing.assert_array_equal(agent.weights, other.weights)
    assert without_clock(agent.history) == without_clock(other.history)
    np.testing.assert_array_equal(agent.trainer.collector.observation, other.trainer.collector.observation)


@pytest.mark.slow
def test_killed_run_resumes_bit_for_bit_and_evaluates(tmp_path):
    command = ["train", "SpaceInvaders", *FLAGS, "--until", "600", "--out"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    killed = [sys.executable, "-m", "cdqn", *command, str(tmp_path / "killed")]
    with subprocess.Popen(killed, stdout=subprocess.DEVNULL) as process:
        while not list(tmp_path.glob("killed/checkpoints/step-*[2-9]00")):
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.005)
        process.kill()
    assert main(["resume", str(tmp_path / "killed"), "--steps", "600"]) == 0
    whole, killed = (without_clock(rows(tmp_path / name, "progress")) for name in ("whole", "killed"))
    assert whole == killed
    assert main(["evaluate", str(tmp_path / "killed"), "--episodes", "2"]) == 0


def test_until_stops_early_on_the_schedules_of_the_whole_budget(tmp_path):
    run = tmp_path / "run"
    assert main(["train", "SpaceInvaders", *FLAGS, "--until", "300", "--out", str(run)]) == 0
    last = rows(run, "progress")[-1]
    assert last["step"] == 300
    assert last["beta"] == pytest.approx(0.4 + 0.6 * 300 / 2000)
    assert main(["resume", str(run), "--steps", "400"]) == 0
    assert rows(run, "progress")[-1]["beta"] == pytest.approx(0.4 + 0.6 * 400 / 2000)


def test_until_outside_the_budget_is_told(capsys):
    assert main(["train", "SpaceInvaders", *FLAGS, "--until", "2001"]) == 1
    assert "--until 2001 is outside the budget of 2000 steps" in capsys.readouterr().err


def test_returns_are_raw_scores_and_rewards_clipped_in_memory():
    agent = cdqn.CDQN("SpaceInvaders", **(TINY | {"warmup_steps": 1_990, "memory_size": 2_000}))
    agent.learn(1_980)
    batch = agent.trainer.replay.sample(500)
    assert set(batch.reward.tolist()) == {0.0, 1.0}
    assert max(row["return"] for row in agent.history if row["kind"] == "episode") >= 20


def test_automatic_discount_is_found_at_the_end_of_the_warmup_and_saved(tmp_path):
    settings = TINY | {"preset": "paper-5.3", "warmup_steps": 1_200, "memory_size": 2_000, "time_limit_steps": 250}
    agent = cdqn.CDQN("SpaceInvaders", **settings)
    events = []
    agent.learn(1_100, lambda event, agent: events.append(event))
    assert agent.trainer.calibrator.gamma is None
    agent.save(tmp_path / "before")
    agent.learn(300, lambda event, agent: events.append(event))
    (event,) = [event for event in events if isinstance(event, Calibrated)]
    found = event.found
    assert event.step == 1_200
    assert event.row() == {"kind": "calibration", "step": 1_200, **found._asdict()}
    assert 0.99 <= found.gamma <= 0.9998
    assert agent.trainer.learner.gamma == found.gamma
    assert found.scale > 0
    assert found.note
    resumed = cdqn.load(tmp_path / "before").learn(300)
    np.testing.assert_array_equal(resumed.weights, agent.weights)
    agent.save(tmp_path / "after")
    assert cdqn.load(tmp_path / "after").trainer.calibrator.found == agent.trainer.calibrator.found


def test_learner_sees_normalised_rewards_while_the_memory_keeps_raw_ones():
    settings = TINY | {"preset": "paper-5.3", "warmup_steps": 1_200, "memory_size": 2_000, "time_limit_steps": 250}
    agent = cdqn.CDQN("SpaceInvaders", **settings)
    agent.learn(1_196)
    trainer, batches = agent.trainer, []
    update = trainer.learner.update
    trainer.learner.update = lambda batch: batches.append(batch) or update(batch)
    agent.learn(40)
    found, gamma = trainer.calibrator.found, trainer.learner.gamma
    for batch in batches:
        raw = trainer.replay.read(batch.slots, batch.weight)
        assert set(raw.reward.tolist()) <= {0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 200.0}
        offset = np.where(raw.terminated, found.mean, (1 - gamma) * found.mean)
        np.testing.assert_allclose(batch.reward, (raw.reward - offset) / found.scale, rtol=1e-5)


def test_nothing_is_stored_between_drawing_a_batch_and_learning_from_it(monkeypatch):
    calls = []
    for owner, name in ((PrioritizedReplay, "add"), (PrioritizedReplay, "update_priorities"), (Prefetcher, "request")):
        original = getattr(owner, name)

        def noted(self, *arguments, original=original, name=name):
            calls.append(name)
            return original(self, *arguments)

        monkeypatch.setattr(owner, name, noted)
    agent = cdqn.CDQN("SpaceInvaders", **TINY)
    agent.learn(300)
    after = calls[calls.index("request") :]
    assert after[:9] == ["request", "update_priorities", "add"] * 3
    assert calls.count("update_priorities") == (300 - 160) // 4


def test_frames_are_kept_once():
    agent = cdqn.CDQN("SpaceInvaders", **TINY)
    agent.learn(300)
    store = agent.trainer.replay._store
    assert isinstance(store, FrameStore)
    assert store.frame_count < 1.3 * 300


def test_memory_that_does_not_fit_is_refused_with_both_numbers(monkeypatch):
    tight = type("memory", (), {"available": 10**8})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: tight)
    with pytest.raises(ConfigError, match=r"needs about \d\.\d GB, and 100 MB of memory are available: lower memory"):
        cdqn.CDQN("SpaceInvaders", preset="paper-5.1")


def test_sizes_are_written_as_people_write_them():
    assert [readable_bytes(n) for n in (1_133_000_000, 47_100_000)] == ["1.1 GB", "47 MB"]


def test_estimate_is_that_of_the_budget_when_it_is_shorter_than_the_memory():
    agent = cdqn.CDQN("SpaceInvaders", **(TINY | {"memory_size": 100_000, "steps": 1_000}))
    assert memory_estimate(agent.spec, agent.config) < 1e6


def test_evaluation_with_other_preprocessing_is_refused():
    agent = cdqn.CDQN("SpaceInvaders", **TINY)
    other = cdqn.CDQN("SpaceInvaders", **(TINY | {"frame_size": (44, 40)}))
    with pytest.raises(ConfigError, match=r"\(4, 44, 40\)"):
        agent.evaluate(episodes=1, env=other.trainer.collector.env)


def test_game_without_preset_gets_the_one_for_laptops(tmp_path, capsys):
    flags = ["--until", "4", "--evaluation-episodes", "1", "--time-limit-steps", "20"]
    assert main(["train", "Pong", *flags, "--out", str(tmp_path / "run")]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())["config"]
    assert config["frame_size"] == list(PRESETS["laptop"].settings["frame_size"])
    assert config["sticky_actions"] == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "preset laptop · sticky actions 0 · replay memory: about" in printed


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_device_that_is_not_there_is_told():
    with pytest.raises(ConfigError, match="PyTorch finds no GPU"):
        cdqn.CDQN("SpaceInvaders", **(TINY | {"device": "cuda"}))


def test_atari_settings_without_a_game_are_told():
    with pytest.raises(ConfigError, match="frame_size: settings of Atari games"):
        cdqn.CDQN("CartPole-v1", frame_size=(84, 84))


def test_preset_of_games_for_another_environment_is_told_as_such():
    with pytest.raises(ConfigError, match="preset 'laptop' is for Atari games"):
        cdqn.CDQN("CartPole-v1", preset="laptop")


def test_frames_of_an_environment_object_are_taken_as_they_are():
    games = make_vec("Pong", 2, preprocessing={"frame_size": (44, 40)})
    agent = cdqn.CDQN(games, warmup_steps=40, memory_size=100, channels=(4, 4, 4), hidden=(8,))
    agent.learn(60)
    assert agent.spec.observation_shape == (4, 44, 40)
    assert agent.config.frame_size is None
    with pytest.raises(ConfigError, match="frame_size: settings of Atari games"):
        cdqn.CDQN(games, frame_size=(50, 50))


@pytest.mark.parametrize("seed", [5, 6])  # whose memory holds 27 and 29 rows after the warm-up
def test_nothing_is_stored_while_a_batch_is_being_drawn(seed, monkeypatch):
    """Where much is discarded, the memory may hold less than a batch when the first update is due."""
    changes = {"seed": seed, "warmup_steps": 64, "discard_fraction": 0.5, "update_period_steps": 1}
    agent = cdqn.CDQN("Breakout", **{**TINY, **changes})
    trainer = agent.trainer
    store, pending = trainer.replay.add, []

    def watched(transitions):
        pending.append(trainer._prefetcher._next is not None)
        store(transitions)

    monkeypatch.setattr(trainer.replay, "add", watched)
    agent.learn(88)
    assert trainer.learner.updates > 0
    assert not any(pending)
