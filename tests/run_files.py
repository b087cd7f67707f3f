"""Small runs of the command line, and what they leave behind, on disk and on stderr."""

import json
import subprocess
import sys
import time
from pathlib import Path

from cdqn.cli.main import main
from cdqn.config import Config
from cdqn.runs.run_pool import PlannedRun
from cdqn.runs.stopping import Stop
from cdqn.runs.workers.tasks import carry_out

SMALL = ["--hidden", "16", "16", "--warmup-steps", "200", "--memory-size", "5000", "--evaluation-episodes", "4"]
SMALL += ["--update-period-steps", "4"]
SMALL += ["--log-period-steps", "200", "--checkpoint-period-steps", "1000", "--compile", "off"]


def train(run: str | Path, *flags: str, env: str = "CartPole-v1", steps: int = 2000) -> int:
    """`cdqn train` with a small network; its exit code."""
    return main(["train", env, "--out", str(run), "--steps", str(steps), *SMALL, *flags])


SMALL_SETTINGS = {
    "steps": 900,
    "hidden": (8,),
    "warmup_steps": 100,
    "update_period_steps": 8,
    "log_period_steps": 100,
    "checkpoint_period_steps": 300,
    "evaluation_episodes": 2,
    "compile": "off",
}


def planned(env_id: str, **settings) -> PlannedRun:
    """A run of several, for `run_all`."""
    return PlannedRun(env_id, Config(**{**SMALL_SETTINGS, **settings}).resolved())


class InlinePool:
    """One worker, in this process: each task is done as soon as it is given."""

    jobs = 1

    def hire(self, perform, heeds_stop):
        return _InlineWorker(perform)

    def wait(self, workers, seconds):
        return [worker for worker in workers if worker.events]


class _InlineWorker:
    def __init__(self, perform):
        self.perform, self.stop, self.events = perform, Stop(), []

    def send(self, task):
        if task is None:
            self.stop.request()
        else:
            carry_out(self.perform, task, lambda kind, value: self.events.append((kind, value)), self.stop)

    def receive(self):
        return self.events.pop(0)

    def dismiss(self):
        pass

    def join(self):
        pass


def one_line(capsys) -> str:
    """What stood on stderr: exactly one line, and no traceback."""
    text = capsys.readouterr().err.strip()
    assert text.startswith("cdqn: ")
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def without_clock(run: Path) -> list[dict]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        row.pop("steps_per_second", None)
    return rows


def newest_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"))


def assert_same_end(run: Path, other: Path) -> None:
    """Two runs ended bit for bit in the same place, and said the same on their way."""
    mine, theirs = newest_checkpoint(run), newest_checkpoint(other)
    assert mine.name == theirs.name
    assert (mine / "arrays.safetensors").read_bytes() == (theirs / "arrays.safetensors").read_bytes()
    state, other_state = (json.loads((place / "state.json").read_text())["state"] for place in (mine, theirs))
    assert state["trainer"] == other_state["trainer"]
    assert without_clock(run) == without_clock(other)


def spawn(*arguments: str) -> subprocess.Popen:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "cdqn", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process: subprocess.Popen) -> None:
    """Wait for something a running process does, as long as it runs."""
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
