"""`cdqn list`, `cdqn demo`, `cdqn reproduce` and `cdqn report`.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from cdqn.cli.common import MOST_SEEDS, Where, WhereFlags, console, errors
from cdqn.errors import ConfigError
from cdqn.report.terminal import say


@dataclass
class List:
    """Show what there is: algorithms, presets, tasks and runs; or all of one kind."""

    what: Positional[str] = "all"
    """presets, environments, atari (the games), runs, or figures (of the paper, and what they take on this machine)."""
    runs: Path = Path("runs")
    """Where to look for runs."""

    def run(self) -> int:
        from cdqn.cli.listing import listing

        for part in listing(self.what, self.runs, console):
            console.print(part)
        return 0


@dataclass
class Demo:
    """See DQN diverge where C-DQN does not: three algorithms on the same data; a table and a picture."""

    out: Path = Path("runs/demo")
    """Where the picture and the data go."""
    seeds: int = 6
    """Runs of each algorithm."""
    jobs: int | None = None
    """Processes at a time; default: one for each core, two at most."""

    def run(self) -> int:
        from cdqn.cli.console import CountDisplay
        from cdqn.experiments.demo.figure import render_demo, write_demo
        from cdqn.experiments.demo.runs import run_demo
        from cdqn.storage.files import writing

        if self.seeds > MOST_SEEDS:
            raise ConfigError(f"seeds is {self.seeds}: at most {MOST_SEEDS} runs of an algorithm are trained at a time")
        with writing(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        with CountDisplay("C-DQN, DQN and RG on the same data", 1, console) as display:
            result = run_demo(
                seeds=self.seeds, jobs=self.jobs, on_progress=lambda done, total: display.set(done, total)
            )
        console.print(render_demo(result))
        for path in write_demo(result, self.out):
            say(console, f"wrote {path}")
        return 0


@dataclass
class Reproduce:
    """Reproduce figures of the paper: data, pictures, and a verdict on each of its claims."""

    figures: Positional[list[str]]
    """Which ones: fig1 … fig15, table1, conditioning, controllers (`cdqn list figures`), or all."""
    scale: Literal["smoke", "laptop", "paper"] = "laptop"
    """smoke: does it run; laptop: shorter than the paper's; paper: as published (fig8: hours, fig9: days)."""
    seed: int = 0
    """Seed of the runs."""
    runs: int | None = None
    """Independent runs of each setting; default: as many as the scale has. Fewer take less time."""
    algorithms: str | None = None
    """What fig8 trains, by commas, for instance cdqn,dqn,rg,dcdqn; default: the three of the paper."""
    out: Path = Path("runs/reproduce")
    """Where data and pictures go."""
    where: WhereFlags = field(default_factory=Where)

    def run(self) -> int:
        from cdqn.algorithms import OF_THE_PAPER
        from cdqn.cli.console import CountDisplay
        from cdqn.experiments import reproduce
        from cdqn.experiments.request import Request
        from cdqn.report.reproduction import render_claims
        from cdqn.storage.files import writing

        names = list(reproduce.FIGURES) if self.figures == ["all"] else list(dict.fromkeys(self.figures))
        reproduce.check(names)
        if self.algorithms is not None and names != ["fig8"]:
            raise ConfigError("algorithms can be chosen for fig8 alone: the other figures are what the paper shows")
        algorithms = tuple(self.algorithms.split(",")) if self.algorithms else OF_THE_PAPER
        pool = self.where.pool()
        with writing(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            begun = time.monotonic()
            with CountDisplay(f"{name}, {self.scale}", 1, console) as display:
                request = Request(self.scale, self.seed, pool, self.out.absolute(), self.runs, display.set, algorithms)
                result = reproduce.run(name, request)
            with writing(self.out):
                written = self._write(name, result, time.monotonic() - begun)
            console.print(render_claims(result))
            for path in written:
                say(console, f"wrote {path}")
        say(console, f"`cdqn report {self.out}` makes one page of it")
        return 0

    def _write(self, name: str, result: Any, seconds: float) -> list[Path]:
        """The data, the claims, the authors' curves, the pictures, and what was run."""
        from cdqn.experiments import reproduce
        from cdqn.report.reproduction import write_about, write_claims, write_rows

        data, claims, published, png, pdf, about = (
            self.out / f"{name}{ending}"
            for ending in (".csv", "_claims.csv", "_published.csv", ".png", ".pdf", ".json")
        )
        write_rows(data, result.rows)
        write_claims(claims, result)
        if result.published:
            write_rows(published, result.published)
        for picture in (png, pdf):
            reproduce.draw(result, picture)
        figure = reproduce.FIGURES[name]
        write_about(
            about,
            result,
            label=figure.label,
            section=figure.section,
            title=figure.title,
            scale=self.scale,
            seed=self.seed,
            command=self._command(name),
            seconds=round(seconds, 1),
            versions=versions(),
        )
        return [path for path in (data, claims, published, png, pdf, about) if path.exists()]

    def _command(self, name: str) -> str:
        """The line that repeats it."""
        given = [("--seed", self.seed, 0), ("--runs", self.runs, None), ("--algorithms", self.algorithms, None)]
        flags = [f"{flag} {value}" for flag, value, default in given if value != default]
        return " ".join(["cdqn reproduce", name, "--scale", self.scale, *flags, *self.where.flags()])


def versions() -> dict[str, str]:
    """Of what results depend on."""
    import platform

    import gymnasium
    import numpy
    import torch

    from cdqn import __version__

    numbers = {"torch": torch.__version__, "numpy": numpy.__version__, "gymnasium": gymnasium.__version__}
    return {"cdqn": __version__, "python": platform.python_version(), **{k: str(v) for k, v in numbers.items()}}


@dataclass
class Report:
    """Make one page, for a browser, of what `cdqn reproduce` wrote; it needs no network."""

    folder: Positional[Path]
    """A folder of `cdqn reproduce`."""
    out: Path | None = None
    """The page; default FOLDER/report.html."""

    def run(self) -> int:
        from cdqn.report.page.content import read_folder
        from cdqn.report.page.html import render
        from cdqn.storage.files import write_text, writing

        page = read_folder(self.folder)
        path = self.out or self.folder / "report.html"
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, render(page))
        for problem in page.problems:
            say(errors, f"cdqn: {problem}", "yellow")
        say(console, f"wrote {path}")
        return 0
