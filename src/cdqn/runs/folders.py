"""Folders on disk that one process at a time may write to."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdqn.errors import CheckpointError
from cdqn.storage.files import require_no_links, writing

try:
    import fcntl
except ImportError:  # Windows has no such lock, and does without
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Refuse to open a file through a symbolic link; Windows has no such flag."""


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """A new, empty folder, locked before the first byte is written to it: of two who begin together one is refused."""
    require_new(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        require_new(folder)
        yield


@contextmanager
def locked_run(run: Path) -> Iterator[None]:
    """`locked`, for what is a run folder."""
    if not (run / "config.json").exists():
        raise CheckpointError(f"{run} is not a run folder: it has no config.json")
    with locked(run):
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process, however it ends."""
    require_no_links(folder)
    with writing(folder):  # never emptied, never another file than the folder's own
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CheckpointError(
                    f"{folder} is being trained by another process: wait for it or stop it"
                ) from error
        yield
    finally:
        os.close(lock)


def require_new(folder: Path, or_else: str = "") -> None:
    """Refuse a folder in which there is something."""
    with writing(folder):
        taken = folder.exists() and (not folder.is_dir() or any(not _is_debris(path) for path in folder.iterdir()))
    if taken:
        raise CheckpointError(
            f"{folder} exists already: `cdqn resume {folder}` continues it, --out {folder}-2 starts another{or_else}"
        )


def remove_run(run: Path) -> None:
    """Delete what a run has left in its folder, to begin it anew; refuse a folder that holds anything else."""
    if not run.exists() or not any(run.iterdir()):
        return
    with locked_run(run):
        if others := sorted(path.name for path in run.iterdir() if path.name not in OF_A_RUN and not _is_debris(path)):
            raise CheckpointError(f"{run} holds {others[0]} besides a run: move that away, or choose another --out")
        with writing(run):
            for name in OF_A_RUN:  # config.json last: until then it is a run, and can be removed again
                path = run / name
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


OF_A_RUN = (
    *("metrics.jsonl", "checkpoints", "candidates", "best", "tensorboard", "learning_curve.png", "protocol.json"),
    "config.json",
)
"""What is in a run folder."""


def _is_debris(path: Path) -> bool:
    """What a process leaves that is killed before it has written its first file."""
    return path.name == LOCK or (path.name.startswith(".") and path.name.endswith(".writing"))
