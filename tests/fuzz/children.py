"""Commands in processes that may be killed: forked from a server that has PyTorch imported, so that each takes no time.

A death is placed by counting, not by the clock, so that a seed repeats it: at the n-th call of a Python function, at
the n-th call that changes something on disk, or at the n-th step of CartPole (counting calls slows a compiler down).
"""

import multiprocessing
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

SERVER = multiprocessing.get_context("forkserver")
PRELOADED = ["cdqn.runs.workers.preloaded", "cdqn.cli.main", "cdqn.runs.suite", "ale_py", "minatar"]
PRELOADED += ["cdqn.report.learning_curve", "cdqn.report.comparison", "matplotlib.backends.backend_agg"]
PRELOADED += ["tensorboard.compat.proto.event_pb2", "tensorboard.summary.writer.record_writer"]
SERVER.set_forkserver_preload(PRELOADED)
DISK_CALLS = {"open", "write", "flush", "close", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir", "truncate"}
DISK_CALLS |= {"write_text", "write_bytes", "save_file", "serialize_file", "dump", "flock", "link", "pwrite"}


class Death(NamedTuple):
    """Where a process is to die: at the `nth` call of its kind, counted from 1."""

    kind: str
    """"call", "disk" or "step"."""
    nth: int


class Ended(NamedTuple):
    """What a process left: its exit code, what it said, and how many calls of each kind it made."""

    code: int
    said: str
    counts: dict[str, int]


def start(arguments: list[str], folder: Path, death: Death | None = None, **more: Any) -> Any:
    """`cdqn ARGUMENTS` in `folder`; a process whose output goes to the file folder/said-PID."""
    process = SERVER.Process(target=_run, args=(arguments, str(folder), death, more))
    process.start()
    return process


def finish(process: Any, folder: Path) -> Ended:
    """Wait for its end."""
    process.join()
    said = folder / f"said-{process.pid}"
    text = said.read_text(errors="replace") if said.exists() else ""
    said.unlink(missing_ok=True)
    counts = folder / f"counts-{process.pid}"
    numbers = [int(number) for number in counts.read_text().split()] if counts.exists() else [0, 0]
    counts.unlink(missing_ok=True)
    return Ended(process.exitcode, text, dict(zip(("call", "disk"), numbers, strict=True)))


def run(arguments: list[str], folder: Path, death: Death | None = None, **more: Any) -> Ended:
    """`cdqn ARGUMENTS` to its end, or to its death."""
    return finish(start(arguments, folder, death, **more), folder)


def run_whole(arguments: list[str], folder: Path, count: bool = True) -> Ended:
    """`cdqn ARGUMENTS`, which nobody disturbs and which must succeed, with the number of calls it made."""
    folder.mkdir()
    ended = run(arguments, folder, count=count)
    assert ended.code == 0, ended.said
    return ended


def _run(arguments: list[str], folder: str, death: Death | None, more: dict[str, Any]) -> None:
    """In the process."""
    os.chdir(folder)
    output = os.open(f"said-{os.getpid()}", os.O_CREAT | os.O_WRONLY, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    import torch

    torch.set_num_threads(1)
    from matplotlib.figure import Figure

    from cdqn.cli import common
    from cdqn.cli.main import main

    Figure.savefig = _save_no_picture  # type: ignore[method-assign]
    common.console.file = sys.stdout
    common.errors.file = sys.stderr
    if largest := more.get("largest_file"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if barrier := more.get("barrier"):
        barrier.wait()
    counts = {"call": 0, "disk": 0}
    if death and death.kind == "step":
        _die_at_step(death.nth)
    elif death or more.get("count"):
        sys.setprofile(_counter(counts, death))
    try:
        code = main(arguments)
    except SystemExit as error:
        code = int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 99
    sys.setprofile(None)
    if more.get("count"):
        Path(f"counts-{os.getpid()}").write_text(f"{counts['call']} {counts['disk']}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _save_no_picture(figure: Any, path: Any, **_: Any) -> None:
    """Drawing takes longer than the runs do, and says nothing about them."""
    Path(path).write_bytes(b"")


def _counter(counts: dict[str, int], death: Death | None) -> Any:
    """Counts what the main thread calls, and ends the process when its time has come.

    From the moment on when the flags have been read, and until the run is drawn: that can be done again by anybody.
    """
    begun = False

    def count(frame: Any, event: str, function: Any) -> None:
        nonlocal begun
        name = frame.f_code.co_name if event == "call" else getattr(function, "__name__", "")
        if event == "call" and name == "conclude":
            sys.setprofile(None)
        begun = begun or (name == "run" and "cli" in frame.f_code.co_filename)
        if not begun or event not in ("call", "c_call"):
            return
        counts["call"] += event == "call"
        counts["disk"] += (touched := name in DISK_CALLS and "rich" not in frame.f_code.co_filename)
        if death and counts[death.kind] == death.nth and (touched or death.kind == "call"):
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def _die_at_step(nth: int) -> None:
    from gymnasium.envs.classic_control.cartpole import CartPoleEnv

    original, made = CartPoleEnv.step, 0

    def step(self: Any, action: Any) -> Any:
        nonlocal made
        made += 1
        if made == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, action)

    CartPoleEnv.step = step
