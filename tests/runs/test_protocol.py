"""The test protocol of App. B.4, from the command line to Table 1."""

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cdqn.agent import Agent
from cdqn.cli.main import main
from cdqn.report.protocol import render_protocol
from cdqn.report.tables import format_number
from cdqn.runs.candidates import Candidates
from cdqn.runs.folders import locked
from cdqn.runs.loading import load
from cdqn.runs.protocol import run_protocol
from cdqn.storage.checkpoint import load_checkpoint_values, read_weights, write_weights
from cdqn.training.run_config import read_run_config

FLAGS = ["--hidden", "16", "--warmup-steps", "200", "--memory-size", "1000", "--evaluation-episodes", "2"]
FLAGS += ["--update-period-steps", "4", "--log-period-steps", "100", "--compile", "off"]
STEPS, PERIOD = 1600, 200


def train(run: Path, *flags: str, steps: int = STEPS) -> None:
    assert main(["train", "CartPole-v1", "--out", str(run), "--steps", str(steps), *FLAGS, *flags]) == 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("protocol") / "run"
    train(run, "--candidate-period-steps", str(PERIOD))
    return run


@pytest.fixture
def run(trained, tmp_path) -> Path:
    """A copy to write to."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture(scope="module")
def tested(trained, tmp_path_factory) -> Path:
    run = Path(shutil.copytree(trained, tmp_path_factory.mktemp("protocol") / "tested"))
    assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "30"]) == 0
    return run


def result_of(run: Path) -> dict:
    return json.loads((run / "protocol.json").read_text())


def books_of(run: Path) -> Candidates:
    books = Candidates(run, 4)
    books.load_state_dict(load_checkpoint_values(run)["candidates"])
    return books


def one_line(capsys) -> str:
    text = capsys.readouterr().err.strip()
    assert text.startswith("cdqn: ")
    assert "\n" not in text
    return text


def test_best_three_are_validated_with_their_own_weights_and_the_winner_is_tested(tested):
    content = result_of(tested)
    ranking = books_of(tested).ranking()
    assert [entry["step"] for entry in content["candidates"]] == [candidate.step for candidate in ranking]
    assert [entry["training_score"] for entry in content["candidates"]] == [candidate.score for candidate in ranking]
    assert len(ranking) == 3
    agent = load(tested)
    returns = []
    for entry in content["candidates"]:
        agent.weights = read_weights(books_of(tested).path(entry["step"]))
        played = agent.evaluate(30, 0.01, entry["validation"]["seed"], num_envs=16)
        assert entry["validation"]["returns"] == played.returns.tolist()
        assert entry["validation"]["mean"] == pytest.approx(np.mean(played.returns))
        returns.append(entry["validation"]["returns"])
    assert returns[0] != returns[1], "two candidates played the same: the test cannot tell their weights apart"
    best = max(content["candidates"], key=lambda entry: entry["validation"]["mean"])
    assert content["winner_step"] == best["step"]
    agent.weights = read_weights(books_of(tested).path(best["step"]))
    played = agent.evaluate(30, 0.01, content["test"]["seed"], num_envs=16)
    assert content["test"]["returns"] == played.returns.tolist()


def test_winner_is_the_best_in_validation_not_in_training(run):
    """The candidate ranked third is given the only weights that do not always go left."""
    ranking = books_of(run).ranking()
    agent, rng = Agent.from_config(*read_run_config(run)), np.random.default_rng(0)
    bad = np.zeros_like(agent.weights)
    while agent.evaluate(10).mean < 30:
        agent.weights = rng.normal(size=bad.shape).astype(np.float32)
    good = agent.weights
    for candidate, theta in zip(ranking, (bad, bad, good), strict=True):
        write_weights(books_of(run).path(candidate.step), theta)
    content = run_protocol(run, episodes=20)
    assert content["winner_step"] == ranking[2].step
    assert content["test"]["mean"] > 15  # always left: 9


def test_test_is_played_on_other_episodes_than_the_validation(tested):
    content = result_of(tested)
    winner = next(entry for entry in content["candidates"] if entry["step"] == content["winner_step"])
    assert len({entry["validation"]["seed"] for entry in content["candidates"]}) == 1
    assert content["test"]["seed"] != winner["validation"]["seed"]
    assert content["test"]["returns"] != winner["validation"]["returns"]


def test_episodes_and_epsilon_are_those_of_the_paper_unless_given(run, monkeypatch):
    asked = []

    def evaluate(self, episodes, epsilon, seed, **options):
        asked.append((episodes, epsilon))
        return real(self, 2, epsilon, seed, **options)

    real = Agent.evaluate
    monkeypatch.setattr(Agent, "evaluate", evaluate)
    assert main(["evaluate", str(run), "--protocol", "paper"]) == 0
    assert asked == [(400, 0.01)] * 4
    asked.clear()
    assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "7", "--epsilon", "0"]) == 0
    assert asked == [(7, 0.0)] * 4
    asked.clear()
    assert main(["evaluate", str(run)]) == 0
    assert asked == [(100, 0.0)]


def test_seed_makes_another_validation_and_another_test(run):
    one, other, again = (run_protocol(run, 8, seed=seed) for seed in (1, 2, 1))
    assert one == again
    assert one["test"]["seed"] != other["test"]["seed"]
    assert one["candidates"][0]["validation"]["seed"] != other["candidates"][0]["validation"]["seed"]


def test_table_shows_each_candidate_and_the_test_of_the_winner(tested):
    console = Console(file=io.StringIO(), width=80)
    content = result_of(tested)
    console.print(render_protocol(content))
    text = console.file.getvalue()
    assert "CartPole-v1, C-DQN after 1,600 of 1,600 steps" in text
    rows = {entry["step"]: entry for entry in content["candidates"]}
    lines = {step: next(line for line in text.splitlines() if line.strip().startswith(f"{step:,} ")) for step in rows}
    for step, line in lines.items():
        assert line.count("±") == (2 if step == content["winner_step"] else 1)
        assert format_number(rows[step]["validation"]["mean"]) in line
    assert format_number(content["test"]["mean"]) in lines[content["winner_step"]]


def test_json_is_what_is_in_the_file(run, capsys):
    assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "1", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == result_of(run)
    assert "NaN" not in printed  # the standard error of one episode
    render_protocol(result_of(run))


def test_protocol_leaves_the_rest_of_the_run_as_it_was(run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    run_protocol(run, 2)
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert set(after) - set(before) == {run / "protocol.json"}
    assert all(after[path] == content for path, content in before.items())


# What cannot work


def test_run_without_candidates_is_told_which_setting_keeps_them(tmp_path, capsys):
    train(tmp_path / "run", steps=300)
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--protocol", "paper"]) == 1
    assert "--candidate-period-steps 10000" in one_line(capsys)


def test_run_that_has_come_to_no_candidate_is_told_why(tmp_path, capsys):
    train(tmp_path / "run", "--candidate-period-steps", "5000", steps=300)
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--protocol", "paper"]) == 1
    text = one_line(capsys)
    for word in ("candidate_period_steps 5000", "step 300", "train it further"):
        assert word in text


def test_missing_or_foreign_weights_are_told_by_name(run, capsys):
    path = books_of(run).path(books_of(run).ranking()[0].step)
    write_weights(path, np.zeros(5, np.float32))
    assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "1"]) == 1
    assert "do not fit" in one_line(capsys)
    path.unlink()
    assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "1"]) == 1
    assert path.name in one_line(capsys)


@pytest.mark.parametrize("flags", [["--episodes", "0"], ["--epsilon", "1.5"]])
def test_impossible_numbers_are_refused(run, flags, capsys):
    assert main(["evaluate", str(run), "--protocol", "paper", *flags]) == 1
    assert "the protocol was asked for" in one_line(capsys)


def test_run_in_training_is_not_tested(run, capsys):
    """Its candidates may be deleted under our hands."""
    with locked(run):
        assert main(["evaluate", str(run), "--protocol", "paper", "--episodes", "1"]) == 1
    assert "another process" in one_line(capsys)
