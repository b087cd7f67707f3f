"""Several runs at once: their parent killed, their workers killed, and two processes that want the same folder."""

import csv
import json
import os
import shutil
import signal
import time

import numpy as np
import psutil
import pytest
from children import SERVER, Death, finish, run, run_whole, start
from fuzzing import seed_of_round, times

from run_files import assert_same_end, newest_checkpoint

SMALL = ["--hidden", "8", "--warmup-steps", "60", "--log-period-steps", "50", "--checkpoint-period-steps", "100"]
SMALL += ["--evaluation-episodes", "1", "--memory-size", "150", "--compile", "off"]
COMPARE = [
    "compare",
    "CartPole-v1",
    "--algorithms",
    "cdqn,dqn",
    "--seeds",
    "1",
    "--steps",
    "300",
    "--jobs",
    "2",
    *SMALL,
]
SUITE = ["suite", "--scale", "smoke", "--tasks", "CartPole,FrozenLake", "--algorithms", "cdqn", "--seeds", "1"]
SUITE += ["--jobs", "2"]
FIGURE = ["reproduce", "fig8", "--scale", "smoke", "--jobs", "2"]
COMMANDS = {"compare": COMPARE, "suite": SUITE, "reproduce": FIGURE}


def require_the_same(out, true_out):
    """The runs are the same to the last bit, and so is what was found out from them."""
    for metrics in true_out.rglob("metrics.jsonl"):
        assert_same_end(out / metrics.parent.relative_to(true_out), metrics.parent)
    tables = sorted(path.relative_to(true_out) for path in true_out.glob("*.csv"))
    assert tables, "the command leaves no table"
    for table in tables:
        mine, theirs = (without_speed((folder / table).read_text()) for folder in (out, true_out))
        assert mine == theirs, table


def without_speed(table):
    """The rows of a table less the steps per second."""
    rows = list(csv.reader(table.splitlines()))
    kept = [column for column, name in enumerate(rows[0]) if name != "steps_per_second"]
    return [[row[column] for column in kept] for row in rows if "steps_per_second" not in row or row is rows[0]]


def run_until_free(arguments, place):
    """Once more, as soon as the workers of a killed parent have left."""
    while True:
        ended = run(arguments, place)
        if "another process" not in ended.said:
            return ended
        time.sleep(0.1)


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_parents_and_workers_leave_nothing_undone(name, tmp_path):
    """A killed parent is resumed, a killed worker is named and its run completed: bit for bit, both of them."""
    begun = time.monotonic()
    counts = run_whole([*COMMANDS[name], "--out", "out"], tmp_path / "whole").counts
    reference = tmp_path / "whole" / "out", counts, time.monotonic() - begun
    for number in range(0 if name == "reproduce" else times(1, in_round=1)):
        kill_the_parent(name, reference, tmp_path / f"parent{number}", [seed_of_round(), number, *name.encode()])
    for number in range(times(0 if name == "suite" else 1, in_round=1)):
        kill_a_worker(name, reference, tmp_path / f"worker{number}", [seed_of_round(), number, *name.encode(), 1])


def kill_the_parent(name, reference, place, seed):
    true_out, counts, _ = reference
    random = np.random.default_rng(seed)
    place.mkdir()
    kind = str(random.choice(list(counts)))
    death = Death(kind, int(random.integers(1, counts[kind] + 1)))
    run([*COMMANDS[name], "--out", "out"], place, death)
    begun = (place / "out" / ("comparison.json" if name == "compare" else "suite.json")).exists()
    ended = run_until_free(["resume", "out"] if begun else [*COMMANDS[name], "--out", "out"], place)
    assert ended.code == 0, (seed, death, ended.said)
    require_the_same(place / "out", true_out)


def kill_a_worker(name, reference, place, seed):
    true_out, _, seconds = reference
    random = np.random.default_rng(seed)
    place.mkdir()
    process = start([*COMMANDS[name], "--out", "out"], place)
    workers = wait_for_workers(process)
    time.sleep(random.uniform(0, 0.7 * seconds))
    assert workers, "it ended before its workers were seen: nothing is tested"
    victim = workers[int(random.integers(len(workers)))]
    if psutil.pid_exists(victim):
        os.kill(victim, signal.SIGKILL)
    ended = finish(process, place)
    assert ended.code == 0, (seed, ended.said)
    if "killed by signal 9" not in ended.said:  # it had nothing left to do
        assert "signal" not in ended.said
    require_the_same(place / "out", true_out)


def wait_for_workers(process):
    """The processes that it has started, as soon as there are two."""
    while process.exitcode is None:
        try:
            parent = psutil.Process(process.pid)
            # Its children are the server of workers and a tracker of resources; the workers are the server's.
            below = [child for child in parent.children(recursive=True) if child.ppid() != parent.pid]
            workers = [child.pid for child in below if any("forkserver" in word for word in child.cmdline())]
        except psutil.NoSuchProcess:  # one of them has just ended
            continue
        if len(workers) >= 2:
            return workers
        time.sleep(0.02)
    return []


PAIRS = {
    "two trainings": (("train", 0), ("train", 1)),
    "two resumptions": (("resume", 0), ("resume", 0)),
    "a training and a resumption": (("train", 1), ("resume", 0)),
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """The ends of the runs with seeds 0 and 1, and a half of the former, as if it had been killed."""
    place = tmp_path_factory.mktemp("ends")
    for seed in (0, 1):
        assert run(training(seed, str(seed)), place).code == 0
    shutil.copytree(place / "0", place / "half")
    shutil.rmtree(newest_checkpoint(place / "half"))
    return place


def training(seed, out):
    return ["train", "CartPole-v1", "--seed", str(seed), "--steps", "200", "--out", out, *SMALL]


@pytest.mark.parametrize("pair", PAIRS)
def test_of_two_processes_on_one_folder_one_is_refused(pair, ends, tmp_path):
    for number in range(times(1, in_round=7)):
        place = tmp_path / str(number)
        place.mkdir()
        if pair != "two trainings":
            shutil.copytree(ends / "half", place / "run")
        barrier = SERVER.Barrier(2)
        begun = [
            start(["resume", "run"] if command == "resume" else training(seed, "run"), place, barrier=barrier)
            for command, seed in PAIRS[pair]
        ]
        ended = [finish(process, place) for process in begun]
        codes = sorted(end.code for end in ended)
        assert codes == [0, 1], ended
        refused = next(end.said for end in ended if end.code == 1)
        refused = refused.removeprefix("vectors of 4, 2 actions · preset classic-control\n")
        assert refused.startswith("cdqn: "), refused
        assert refused.strip().count("\n") == 0, refused
        seed = json.loads((place / "run" / "config.json").read_text())["config"]["seed"]
        assert_same_end(place / "run", ends / str(seed))


@pytest.mark.parametrize("command", ["train", "resume"])
def test_full_disk_is_said_and_nothing_is_lost(command, ends, tmp_path):
    """No file may grow beyond so many bytes: the system refuses the write, as it does on a full disk."""
    largest = max(path.stat().st_size for path in newest_checkpoint(ends / "0").iterdir())
    for number in range(times(1, in_round=3)):
        random = np.random.default_rng([seed_of_round(), number, *command.encode(), 2])
        place = tmp_path / str(number)
        place.mkdir()
        if command == "resume":
            shutil.copytree(ends / "half", place / "run")
        begin = training(0, "run") if command == "train" else ["resume", "run"]
        room = int(random.integers(1, largest + 1))
        ended = run(begin, place, largest_file=room)
        assert ended.code == 1, (room, ended.said)
        assert "Traceback" not in ended.said, (room, ended.said)
        begin = ["resume", "run"] if (place / "run" / "config.json").exists() else training(0, "run")
        ended = run(begin, place)
        assert ended.code == 0, (room, ended.said)
        assert_same_end(place / "run", ends / "0")
