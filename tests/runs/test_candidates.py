"""Candidates for the final test: the right ones are kept, with the right weights, whatever happens to the run."""

import itertools
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.candidates import Candidates
from cdqn.runs.runner import resume_run, train_run
from cdqn.storage import checkpoint
from cdqn.storage.checkpoint import load_checkpoint_values, read_weights, write_weights
from cdqn.training.events import Episode, Progress

SETTINGS = {
    "steps": 2400,
    "num_envs": 3,
    "hidden": (16,),
    "warmup_steps": 220,
    "update_period_steps": 4,
    "memory_size": 1000,
    "log_period_steps": 50,
    "checkpoint_period_steps": 500,
    "candidate_period_steps": 100,
    "evaluation_episodes": 2,
    "compile": "off",
}


# The books, against a slow twin that looks at all episodes when all is over


class Life:
    """A made-up run: `num_envs` environments side by side with episodes of random lengths and scores.

    Half of the lives are in environments that pause for one step after each episode, to reset themselves.
    """

    def __init__(self, rng, longest):
        self.rng, self.longest = rng, longest
        self.num_envs = int(rng.integers(1, 5))
        self.pauses = bool(rng.integers(2))
        self.step = 0
        self.begun = [0] * self.num_envs
        self.left = [self._draw() for _ in range(self.num_envs)]
        self.lengths = list(self.left)
        self.middles_and_scores = []

    def _draw(self):
        return int(self.rng.integers(1, self.longest + 1))

    def advance(self):
        """One step of all environments; the episodes that end in it."""
        playing = [env for env in range(self.num_envs) if self.left[env] > 0]
        self.step += len(playing)
        ended = []
        for env in range(self.num_envs):
            self.left[env] -= 1
            if self.left[env] == 0:
                score = float(self.rng.integers(-3, 4)) / 3 + self.step / 1000 * self.rng.integers(2)
                ended.append(Episode(self.step, env, score, self.lengths[env], "terminated"))
                begin = max(self.step - self.lengths[env] * self.num_envs, self.begun[env])
                self.middles_and_scores.append(((begin + self.step) / 2, score))
                self.begun[env] = self.step
            if self.left[env] < 0 or (self.left[env] == 0 and not self.pauses):
                self.lengths[env] = self.left[env] = self._draw()
        return ended


def slow_scores(steps, middles_and_scores):
    """For each candidate, the mean over the 40 episodes nearest to it among all episodes of the run."""
    scores = {}
    for step in steps:
        # sorted is stable: of two as near, the one that ended first
        nearest = sorted(middles_and_scores, key=lambda episode: abs(episode[0] - step))[:40]
        scores[step] = sum(score for _, score in nearest) / len(nearest) if nearest else -np.inf
    return scores


@pytest.mark.parametrize("seed", range(9))
def test_best_three_are_those_a_look_at_all_episodes_would_choose(tmp_path, seed):
    rng = np.random.default_rng(seed)
    life = Life(rng, longest=[2, 10, 40][seed % 3])
    books, undisturbed = (Candidates(tmp_path / name, life.num_envs) for name in ("a", "b"))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    steps, most_kept = [], 0
    while life.step < 1500:
        for episode in life.advance():
            books.add_episode(episode)
            undisturbed.add_episode(episode)
        if rng.random() < 0.1:
            steps.append(life.step)
            books.add(life.step, np.full(2, life.step, np.float32))
            undisturbed.add(life.step, np.zeros(1, np.float32))
        if rng.random() < 0.3:
            books.settle(life.step)
            undisturbed.settle(life.step)
        if rng.random() < 0.1:  # a checkpoint, and a new process
            state = json.loads(json.dumps(books.state_dict()))
            books.prune()
            books = Candidates(tmp_path / "a", life.num_envs)
            books.load_state_dict(state)
        kept = books.state_dict()["candidates"]
        most_kept = max(most_kept, len(kept))
    scores = slow_scores(steps, life.middles_and_scores)
    wanted = sorted(steps, key=lambda step: (-round(scores[step], 9), step))[:3]
    ranking = books.ranking()
    assert [round(c.score, 9) for c in ranking] == [round(scores[step], 9) for step in wanted]
    assert [candidate.step for candidate in ranking] == wanted
    for candidate in ranking:
        assert read_weights(books.path(candidate.step)).tolist() == [candidate.step] * 2
    for entry in books.state_dict()["candidates"]:  # also what was settled long ago
        mean = np.mean([score for _, score in entry["episodes"]])
        assert mean == pytest.approx(scores[entry["step"]])
    assert books.state_dict() == undisturbed.state_dict()
    if life.longest <= 10:
        assert most_kept < len(steps) / 2, "hardly any candidate was ever given up: the test shows little"


def fed(tmp_path, candidate_at, episodes, num_envs=1):
    """The books after (end, length, score) of episodes in environment 0, with one candidate among them."""
    books = Candidates(tmp_path, num_envs)
    added = False
    for end, length, score in episodes:
        if end > candidate_at and not added:
            books.add(candidate_at, np.zeros(1, np.float32))
            added = True
        books.add_episode(Episode(end, 0, score, length, "terminated"))
    return books


def test_score_is_the_mean_of_exactly_40_episodes_before_and_after(tmp_path):
    """Episodes of 10 steps, middles at 5, 15, …; the candidate at 1000 has 20 of the 40 on each side."""
    inside = range(800, 1200)
    episodes = [(end, 10, 1.0 if end - 5 in inside else 1e6) for end in range(10, 2000, 10)]
    for edge in (805, 1195):  # the outermost two are worth 41 each: their share tells 40 from 39 and 41
        episodes = [(end, length, 41.0 if end - 5 == edge else score) for end, length, score in episodes]
    books = fed(tmp_path, 1000, episodes)
    assert books.ranking()[0].score == (38 + 2 * 41) / 40


def test_episode_lies_at_its_middle_in_steps_of_the_run(tmp_path):
    """40 short episodes about step 1000, and one long one of 200 of its own steps that ended at 1100.

    With one environment it began at 900 and lies at the candidate; with 4 it began at 300, far from it.
    """
    for num_envs, counted in ((1, True), (4, False)):
        books = Candidates(tmp_path, num_envs)
        books.add(1000, np.zeros(1, np.float32))
        for i in range(40):
            books.add_episode(Episode(1010 + i, num_envs - 1, 0.0, 2, "terminated"))
        books._ended_at[0] = 0
        books.add_episode(Episode(1100, 0, 40.0, 200, "terminated"))
        assert (books.ranking()[0].score > 0) is counted


def test_of_two_episodes_as_near_the_earlier_counts(tmp_path):
    books = Candidates(tmp_path, 2)
    for env, score in ((0, 1.0), (1, 0.0)):
        books.add_episode(Episode(80, env, score, 20, "terminated"))  # middle 60
    books.add(100, np.zeros(1, np.float32))
    for i in range(39):
        books.add_episode(Episode(101 + i, 0, 0.0, 1, "terminated"))
    assert books.ranking()[0].score == 1 / 40
    late = Candidates(tmp_path, 1)
    late.add_episode(Episode(80, 0, 1.0, 40, "terminated"))  # middle 60, distance 40
    late.add(100, np.zeros(1, np.float32))
    for i in range(39):
        late.add_episode(Episode(101 + i, 0, 0.0, 1, "terminated"))
    late.add_episode(Episode(141, 0, 9.0, 2, "terminated"))  # middle 140, distance 40 as well
    assert late.ranking()[0].score == 1 / 40


def test_candidate_is_not_settled_while_an_open_episode_may_still_count(tmp_path):
    """Environment 1 has played since step 0: its episode may end anywhere, and lie near the candidate."""
    books = Candidates(tmp_path, 2)
    books.add(100, np.zeros(1, np.float32))
    for i in range(60):
        books.add_episode(Episode(92 + 2 * i, 0, 1.0, 1, "terminated"))
    books.settle(211)
    assert not books.state_dict()["candidates"][0]["settled"]
    books.add_episode(Episode(212, 1, 41.0, 106, "terminated"))  # middle 106
    assert books.ranking()[0].score == (39 + 41) / 40
    books.settle(400)
    assert books.state_dict()["candidates"][0]["settled"]


def test_candidate_before_the_first_episode_comes_last(tmp_path):
    books = Candidates(tmp_path, 1)
    books.add(10, np.zeros(1, np.float32))
    assert [c.step for c in books.ranking()] == [10]
    assert books.ranking()[0].score == -np.inf


# The files


def test_weights_go_round_bit_for_bit(tmp_path):
    theta = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    write_weights(tmp_path / "w.safetensors", theta)
    assert read_weights(tmp_path / "w.safetensors").tobytes() == theta.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["w.safetensors"]


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "foreign"])
def test_damaged_weights_are_an_error_that_names_the_file(tmp_path, damage):
    path = tmp_path / "w.safetensors"
    write_weights(path, np.arange(100, dtype=np.float32))
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[:-50])
    elif damage == "flipped":
        content[-50] ^= 1
        path.write_bytes(content)
    elif damage == "gone":
        path.unlink()
    else:
        checkpoint.save_file({"theta": np.zeros(3, np.float32)}, path)  # no checksum
    with pytest.raises(CheckpointError, match=r"w\.safetensors"):
        read_weights(path)


def test_values_of_a_checkpoint_are_read_without_its_arrays(tmp_path):
    place = checkpoint.save_checkpoint(tmp_path, 3, {"books": {"a": [1, 2.5]}, "big": np.zeros(5)})
    (place / "arrays.safetensors").unlink()
    assert load_checkpoint_values(tmp_path)["books"] == {"a": [1, 2.5]}


# Runs


def new_agent(**changes):
    return Agent.from_config("CartPole-v1", Config(**(SETTINGS | changes)))


def kept(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(run.glob("candidates/*"))}


def books_of(run: Path):
    return load_checkpoint_values(run)["candidates"]


def episodes_of(run: Path):
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(row["step"] - row["length"] * 3 / 2, row["return"]) for row in rows if row["kind"] == "episode"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("candidates") / "run"
    train_run(new_agent(), run)
    return run


def test_run_keeps_the_best_three_and_those_not_settled(whole):
    """Progress is written at the first multiple of 3 from each 50 on: candidates are at 300, 402, 501, 600 …"""
    steps = [-(-step // 3) * 3 for step in range(300, 2401, 100)]
    scores = slow_scores(steps, episodes_of(whole))
    best = sorted(steps, key=lambda step: (-scores[step], step))[:3]
    on_disk = [int(name.removeprefix("step-").removesuffix(".safetensors")) for name in kept(whole)]
    entries = books_of(whole)["candidates"]
    own = [entry["step"] for entry in entries]
    assert set(own) <= set(on_disk) <= set(steps), "beside them, those that the checkpoint before refers to"
    assert set(best) <= set(own)
    assert 3 <= len(own) < 0.6 * len(steps)
    assert sum(entry["settled"] for entry in entries) == 3
    books = Candidates(whole, 3)
    books.load_state_dict(books_of(whole))
    assert [candidate.step for candidate in books.ranking()] == best


def test_candidate_holds_the_weights_of_its_step(whole):
    for entry in books_of(whole)["candidates"][:2]:
        agent = new_agent().learn(entry["step"])
        assert agent.steps == entry["step"]
        theta = read_weights(Candidates(whole, 3).path(entry["step"]))
        assert theta.tobytes() == agent.weights.tobytes()


def test_nothing_is_kept_where_it_was_not_asked_for(tmp_path):
    train_run(new_agent(candidate_period_steps=None, steps=400), tmp_path / "run")
    assert not (tmp_path / "run" / "candidates").exists()


def test_no_candidate_before_learning_began(tmp_path):
    train_run(new_agent(steps=600, warmup_steps=310), tmp_path / "run")
    assert [entry["step"] for entry in books_of(tmp_path / "run")["candidates"]] == [402, 501, 600]


class Killed(BaseException):
    """The run ends on the spot: nothing is saved any more."""


def kill_at(step):
    def callback(event, agent):
        if isinstance(event, Progress) and event.step >= step:
            raise Killed

    return callback


@pytest.mark.parametrize("period", [100, 167])
def test_killed_and_resumed_run_keeps_the_same_candidates(tmp_path, whole, period):
    """With 167 a period ends between the line at 500 and step 501, at which it is written: it must count once."""
    if period != 100:
        whole = tmp_path / "whole"
        train_run(new_agent(candidate_period_steps=period), whole)
    run = tmp_path / "run"
    with pytest.raises(Killed):
        train_run(new_agent(candidate_period_steps=period), run, [kill_at(350)])
    for step in (350, 1049, 1480, 1999, 2400):
        with pytest.raises(Killed):
            resume_run(run, callbacks=[kill_at(step)])
        named = {
            f"step-{entry['step']:09d}.safetensors" for entry in (books_of(run) or {"candidates": []})["candidates"]
        }
        assert named <= set(kept(run)), "the newest checkpoint counts on a file that is gone"
    resume_run(run)
    assert books_of(run) == books_of(whole)
    assert kept(run) == kept(whole)


def test_complete_run_that_is_trained_further_keeps_the_same_candidates(tmp_path):
    """Ended at 1200 and taken up again, or never ended there: what was unsettled then must still be there."""
    runs = [tmp_path / "once", tmp_path / "twice"]
    with pytest.raises(Killed):
        train_run(new_agent(steps=1200), runs[0], [kill_at(0)])
    train_run(new_agent(steps=1200), runs[1])
    for run in runs:
        resume_run(run, steps=2400)
    assert books_of(runs[0]) == books_of(runs[1])
    assert kept(runs[0]) == kept(runs[1])


DIE_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from cdqn.storage import checkpoint
from cdqn.runs.runner import resume_run

real = checkpoint.save_file

def write_half_and_die(arrays, file, *rest):
    if "step-000001200" not in file.name:
        return real(arrays, file, *rest)
    file.write_bytes(b"half of a candidate")
    print("torch._dynamo" in sys.modules, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

checkpoint.save_file = write_half_and_die
resume_run(Path(sys.argv[1]))
"""


def test_run_killed_while_it_writes_a_candidate_ends_the_same(tmp_path, whole):
    run = tmp_path / "run"
    with pytest.raises(Killed):
        train_run(new_agent(), run, [kill_at(0)])
    process = subprocess.run([sys.executable, "-c", DIE_WHILE_WRITING, str(run)], capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert process.stdout == b"False\n", "a run that compiles nothing imported Dynamo, which takes seconds"
    assert list((run / "candidates").glob(".*")), "it did not die while writing"
    resume_run(run)
    assert books_of(run) == books_of(whole)
    assert kept(run) == kept(whole)


# The agent plays with given weights


def test_agent_takes_over_weights_and_hands_out_copies():
    one, other = new_agent(seed=0), new_agent(seed=1)
    observation = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    assert (one.predict(observation) != other.predict(observation)).any()
    theta = one.weights
    other.weights = theta
    np.testing.assert_array_equal(one.predict(observation), other.predict(observation))
    theta[:] = 0
    assert one.weights.any()
    assert other.weights.any()


def test_weights_of_another_network_are_refused():
    with pytest.raises(ConfigError, match="do not fit"):
        new_agent().weights = np.zeros(3, np.float32)


@pytest.mark.parametrize("value", [0, -1, 2.5, float("nan")])
def test_candidate_period_out_of_range_is_refused(value):
    with pytest.raises(ConfigError, match=r"^candidate_period_steps is "):
        Config(candidate_period_steps=value)


def test_evaluation_in_more_environments_plays_as_many_episodes():
    agent = new_agent()
    results = [agent.evaluate(9, seed=5, num_envs=count) for count in (1, 4, 16)]
    assert [len(result.returns) for result in results] == [9, 9, 9]
    for one, other in itertools.pairwise(results):
        assert one.returns.tolist() != other.returns.tolist()
