"""Reading run folders: `config.json` and `metrics.jsonl`, as a finished, running or killed run left them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.errors import CheckpointError
from cdqn.report.palette import ALGORITHMS, in_order
from cdqn.storage.files import require_no_links
from cdqn.storage.named_code import is_code_name

FloatArray = NDArray[np.float64]
Curve = tuple[FloatArray, FloatArray]
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """One training run: its settings, and what it logged, by kind and in the order of its steps."""

    path: Path
    config: Mapping[str, Any]
    rows: Mapping[str, Sequence[Row]] = field(repr=False)

    @property
    def env_id(self) -> str:
        return str(self.config["env_id"])

    @property
    def env_label(self) -> str:
        """The environment as a result should name it: for Atari with its sticky actions."""
        sticky = self.config.get("sticky_actions")
        return self.env_id if sticky is None else f"{self.env_id}, sticky actions {sticky:g}"

    @property
    def algorithm(self) -> str:
        return str(self.config["algorithm"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    def curve(self, quantity: str, kind: str = "progress") -> Curve:
        """Steps and values of one logged quantity, without the rows where it was null.

        NaN and infinity are kept: they are what a diverged run has to say.
        """
        rows = self.rows.get(kind, ())
        if rows and not any(quantity in row for row in rows):
            known = ", ".join(sorted(set().union(*rows) - {"kind", "step"}))
            raise CheckpointError(f"{self.path}: no {kind} row has {quantity!r}; they have {known}")
        present = [row for row in rows if row.get(quantity) is not None]
        step_T = np.array([row["step"] for row in present], dtype=np.float64)
        value_T = np.array([self._number(row, quantity) for row in present], dtype=np.float64)
        return step_T, value_T

    def quantities(self) -> list[str]:
        """The numbers that progress rows hold, in the order in which the run wrote them."""
        rows = self.rows.get("progress", ())
        numbers = [name for row in rows for name, value in row.items() if isinstance(value, int | float)]
        return [name for name in dict.fromkeys(numbers) if name != "step"]

    def episodes(self) -> Curve:
        """The step at which each training episode ended, and its return."""
        return self.curve("return", kind="episode")

    def evaluations(self) -> Curve:
        """The step of each evaluation, and its mean return."""
        return self.curve("mean", kind="evaluation")

    def q_over_bound(self) -> Curve:
        """Q in units of the largest value it can truly have, where that bound is known and not zero."""
        rows = self.rows.get("progress", ())
        present = [row for row in rows if row.get("q_mean") is not None and row.get("q_bound")]
        step_T = np.array([row["step"] for row in present], dtype=np.float64)
        q_T = np.array([self._number(row, "q_mean") for row in present], dtype=np.float64)
        bound_T = np.array([self._number(row, "q_bound") for row in present], dtype=np.float64)
        return step_T, q_T / bound_T

    @property
    def final_evaluation(self) -> Row | None:
        """The last evaluation, or None for a run that has not come to one."""
        rows = self.rows.get("evaluation", ())
        return rows[-1] if rows else None

    @property
    def final_return(self) -> float | None:
        """Mean return of the evaluation at the end of the budget; None for a run that has not come to it."""
        row = self.final_evaluation
        if row is None or row["step"] < self.config.get("steps", 0):
            return None
        return float(self.evaluations()[1][-1])

    @property
    def warnings(self) -> list[str]:
        return [str(row.get("message", "")) for row in self.rows.get("warning", ())]

    @property
    def diverged(self) -> bool:
        """Whether the run warned of divergence, or logged a loss or Q that is no longer a number."""
        if any("diverg" in message.lower() for message in self.warnings):
            return True
        logged = [(row, key) for row in self.rows.get("progress", ()) for key in ("loss", "q_mean")]
        values = [self._number(row, key) for row, key in logged if row.get(key) is not None]
        return not np.isfinite(values).all()

    def _number(self, row: Row, quantity: str) -> float:
        value = row[quantity]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CheckpointError(
                f"{self.path}: {row['kind']} row at step {row['step']} has {quantity} = {value!r}, "
                "which is no number; the file was edited or written by another program"
            )
        return float(value)


def read_run(path: str | Path) -> Run:
    """Read one run folder; a run killed before its first metric is a run without rows."""
    path = Path(path)
    if not (path / "config.json").is_file():
        raise CheckpointError(f"{path} is not a run folder: it has no config.json; give one made by cdqn")
    require_no_links(path)
    config = _read_config(path / "config.json")
    metrics = path / "metrics.jsonl"
    rows = _read_rows(metrics) if metrics.exists() else []
    return Run(path, config, _by_kind(rows))


def find_runs(folder: str | Path) -> list[Run]:
    """The folder itself if it is a run, else the runs directly inside it, by algorithm, then seed."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder: give the folder of a run or of a comparison")
    if (folder / "config.json").is_file():
        return [read_run(folder)]
    runs = [read_run(child) for child in sorted(folder.iterdir()) if (child / "config.json").is_file()]
    if not runs:
        raise CheckpointError(
            f"no runs in {folder}: neither it nor a folder directly inside it has a config.json; "
            "give the folder of a run or of a comparison"
        )
    order = in_order(run.algorithm for run in runs)
    return sorted(runs, key=lambda run: (order.index(run.algorithm), run.seed))


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads(path.read_bytes())["config"]
        algorithm, seed = config["algorithm"], config["seed"]
        config["env_id"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is not the config.json of a cdqn run ({type(error).__name__}: {error}); "
            "restore it, or leave this folder out"
        ) from error
    if algorithm not in ALGORITHMS and not (isinstance(algorithm, str) and is_code_name(algorithm)):
        raise CheckpointError(f"{path}: algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}")
    if not _is_integer(seed):
        raise CheckpointError(f"{path}: seed {seed!r} is not an integer; restore it, or leave it out")
    return config


def _read_rows(path: Path) -> list[Row]:
    """All rows of a metrics file; only a last line without its newline may be incomplete.

    A process killed while writing leaves exactly that, and its other rows are good. Any other damage means
    that something else wrote to the file, and no figure made from it could be trusted.
    """
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}): restore it, or delete it") from error
    rows = [_parse(line, path, number) for number, line in enumerate(lines, start=1) if line.strip()]
    if rest.strip():
        try:
            rows.append(_parse(rest, path, len(lines) + 1))
        except CheckpointError:
            return rows
    return rows


def _parse(line: bytes, path: Path, number: int) -> Row:
    try:
        row: Row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}, line {number} is damaged ({error}): delete that line to read the rest"
        ) from error
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str) or not _is_integer(row.get("step")):
        raise CheckpointError(
            f"{path}, line {number} is damaged: a row is an object with a kind and an integer step, "
            f"not {line[:60].decode(errors='replace')}; delete that line to read the rest"
        )
    return row


def _by_kind(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows by kind, where a later row replaces those it repeats.

    A run killed between two checkpoints goes on from the older one, and logs the steps in between again:
    where the step goes back, the rows from there on were the first attempt.
    """
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        earlier = kinds.setdefault(row["kind"], [])
        if earlier and row["step"] < earlier[-1]["step"]:
            while earlier and earlier[-1]["step"] >= row["step"]:
                earlier.pop()
        earlier.append(row)
    return kinds


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
