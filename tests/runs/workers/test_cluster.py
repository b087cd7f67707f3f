"""Runs on a Ray cluster: a local one, of two processes."""

import logging
import time
from pathlib import Path

import pytest
import ray

from cdqn.agent import Agent
from cdqn.errors import ConfigError
from cdqn.runs import run_pool
from cdqn.runs.run_pool import run_all
from cdqn.runs.runner import train_run
from cdqn.runs.stopping import Stop
from cdqn.runs.workers.cluster import Desk, RayPool
from cdqn.runs.workers.tasks import perform_all
from cdqn.storage.checkpoint import newest_step
from run_files import planned


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where its processes will be
    ray.shutdown()  # if another test has left one
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


def weights_of(run: Path) -> bytes:
    return (run / "checkpoints" / f"step-{newest_step(run):09d}" / "arrays.safetensors").read_bytes()


@pytest.mark.slow
def test_killed_run_goes_on_from_its_checkpoint_elsewhere_and_nothing_differs(cluster, tmp_path):
    with pytest.raises(ConfigError, match="3 CPUs and 0 GPUs, and the Ray cluster has 2 and 0: lower --cpus-per-run"):
        RayPool(cpus=3)
    assert RayPool(cpus=0.5).jobs == 4
    pool = RayPool()
    assert pool.jobs == 2
    runs = {"dies": planned("cli_envs:Dies-v0"), "line": planned("cli_envs:Line-v0")}
    for name, run in runs.items():
        train_run(Agent.from_config(*run), tmp_path / "alone" / name)
    for folder in ("all", "deaths"):
        Path(folder).mkdir()
    Path("deaths/once").touch()
    rows = []
    outcomes = run_all(Path("all"), runs, pool, lambda name, row: rows.append((name, row)))
    assert [(outcome.finished, outcome.problem) for outcome in outcomes] == [(True, None)] * 2
    warned = [row["message"] for name, row in rows if row["kind"] == "warning"]
    assert len(warned) == 1
    assert warned[0].startswith("its process on the Ray cluster died: ")
    assert warned[0].endswith("; it resumes from its checkpoint")
    steps = [row["step"] for name, row in rows if name == "dies" and row["kind"] == "progress"]
    assert 100 not in steps[steps.index(700) :], "it began anew instead of going on from its checkpoint"
    for name in runs:
        assert weights_of(Path("all") / name) == weights_of(Path("alone") / name)

    def wait_for_the_end(task, say, stop):
        say("begun")
        while not stop.requested():
            time.sleep(0.01)
        return "stopped"

    stop, events = Stop(), []
    for event in perform_all({"a": 1, "b": 2, "c": 3}, wait_for_the_end, pool, stop):
        events.append(event)
        if len(events) == 2:
            stop.request()
    assert sorted(events) == [(name, *what) for name in "ab" for what in (("returned", "stopped"), ("said", "begun"))]


def test_numbers_below_nothing_are_refused():
    with pytest.raises(ConfigError, match="jobs is 0"):
        RayPool(jobs=0)
    with pytest.raises(ConfigError, match="gpus_per_run is -1"):
        RayPool(gpus=-1)


def test_machine_with_another_version_does_no_task():
    desk = Desk(lambda *_: "done", "0.0.1", [])
    desk.do("task")
    kind, text = desk.next_event()
    assert kind == "failed"
    assert "0.0.1 here: install the same" in text


def test_folder_that_the_machines_do_not_share_is_said(tmp_path):
    with pytest.raises(Exception, match="elsewhere is not the same folder on all machines"):
        run_pool._train_or_resume((tmp_path / "elsewhere", "a", planned("cli_envs:Line-v0")), print, None)
