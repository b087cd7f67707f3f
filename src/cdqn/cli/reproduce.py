"""`cdqn list`, `cdqn demo` and `cdqn reproduce`.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from cdqn.cli.common import MOST_SEEDS, console
from cdqn.errors import ConfigError
from cdqn.report.terminal import say


@dataclass
class List:
    """Show algorithms, presets, environments and the runs in a folder."""

    runs: Path = Path("runs")
    """Where to look for runs."""

    def run(self) -> int:
        from cdqn.cli.listing import catalogue

        for part in catalogue(self.runs):
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
    """Which ones: fig1 fig2 fig3 fig8 fig9 controllers conditioning, or all."""
    scale: Literal["smoke", "laptop", "paper"] = "laptop"
    """smoke: does it run; laptop: shorter than the paper's; paper: as published (fig8: hours, fig9: days)."""
    seed: int = 0
    """Seed of the runs."""
    runs: int | None = None
    """Independent runs of each setting; default: as many as the scale has. Fewer take less time."""
    jobs: int | None = None
    """Runs at a time; default: one for each core."""
    out: Path = Path("runs/reproduce")
    """Where data and pictures go."""

    def run(self) -> int:
        from cdqn.cli.console import CountDisplay
        from cdqn.experiments import reproduce
        from cdqn.experiments.request import Request
        from cdqn.report.reproduction import render_claims, write_claims, write_rows
        from cdqn.storage.files import writing

        names = list(reproduce.FIGURES) if self.figures == ["all"] else list(dict.fromkeys(self.figures))
        reproduce.check(names)
        with writing(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            with CountDisplay(f"{name}, {self.scale}", 1, console) as display:
                request = Request(self.scale, self.seed, self.jobs, self.out, self.runs, display.set)
                result = reproduce.run(name, request)
            files = [self.out / f"{name}{ending}" for ending in (".csv", "_claims.csv", ".png", ".pdf")]
            with writing(self.out):
                write_rows(files[0], result.rows)
                write_claims(files[1], result)
                for picture in files[2:]:
                    reproduce.draw(result, picture)
            console.print(render_claims(result))
            for path in files:
                say(console, f"wrote {path}")
        return 0
