"""What several commands share: consoles, flags, and how a run is shown, loaded and concluded.

What a command needs is imported where it runs: the others need not wait for it.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from tyro.conf import OmitArgPrefixes, UseAppendAction, arg

from cdqn.config import Config
from cdqn.report.terminal import say
from cdqn.storage.named_code import import_pieces

console = Console()
errors = Console(stderr=True, soft_wrap=True, highlight=False)


@dataclass(frozen=True, kw_only=True)
class Settings(Config):
    """Settings as they were typed: what they make together is known when the preset is."""

    def __post_init__(self) -> None:
        pass


ConfigFlags = OmitArgPrefixes[Annotated[Config, arg(name="")]]


@dataclass(frozen=True)
class Where:
    """Where several runs are done."""

    jobs: int | None = None
    """Runs at a time; default: one for each core."""
    on: str = "local"
    """local: this machine; ray: a Ray cluster, found by itself; or the address of one, host:port."""
    cpus_per_run: float = 1.0
    """On Ray: what a run takes of the cluster."""
    gpus_per_run: float = 0.0
    """On Ray: the share of a GPU that a run takes."""

    def pool(self) -> Any:
        """The processes; on Ray the connection is made here."""
        if self.on == "local":
            from cdqn.runs.workers.local import LocalPool

            return LocalPool(self.jobs)
        from cdqn.runs.workers.cluster import RayPool

        return RayPool(self.on, self.jobs, self.cpus_per_run, self.gpus_per_run)

    def flags(self) -> list[str]:
        """Those that were given, as one would type them."""
        given = {name: value for name, value in vars(self).items() if value != getattr(Where, name)}
        return [f"--{name.replace('_', '-')} {value}" for name, value in given.items()]


WhereFlags = OmitArgPrefixes[Annotated[Where, arg(name="")]]
AllowImport = UseAppendAction[tuple[str, ...]]
INTERRUPTED = 130
MOST_SEEDS = 1000
"""More are taken for a slip of the hand: each is a run of its own."""


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",")]


def default_folder(name: str) -> Path:
    """Below runs/, with the characters of an environment's id that mean something in a path replaced."""
    return Path("runs") / name.replace("/", "-").replace(":", "-")


@dataclass(frozen=True)
class Env:
    """Another environment than the run names, or one for a run that was trained on an object."""

    env: str | None = None
    """The environment, if it is not the one that the run names: an id, module:Class or module:function."""
    env_kwargs: str | None = None
    """What it is made with, as JSON: '{"continuous": false}'."""
    wrapper: UseAppendAction[tuple[str, ...]] = ()
    """A wrapper around it, module:Name, the innermost first; can be given several times."""

    def making(self) -> dict[str, Any]:
        """The settings with which it is made, as far as they are given; what they name is imported."""
        import_pieces({"wrapper": self.wrapper})
        given = {"env_kwargs": self.env_kwargs, "wrapper": self.wrapper}
        return {name: value for name, value in given.items() if value}


EnvFlags = OmitArgPrefixes[Annotated[Env, arg(name="")]]


def load_agent(run: Path, allow_import: Iterable[str], env: Env, best: bool = False) -> Any:
    """The agent of a run, after a word about a checkpoint that could not be read."""
    from cdqn.runs.loading import load_best, load_run

    if best:
        return load_best(run, env.env, allow_import, **env.making())
    agent, restored = load_run(run, env.env, allow_import, **env.making())
    if restored.damage:
        say(errors, f"cdqn: {restored.damage}", "yellow")
    return agent


def display_of(agent: Any, until: int) -> Any:
    """The bar of a run that is trained up to a step."""
    from cdqn.cli.console import TrainingDisplay

    label = agent.config.algorithm_class.label
    display = TrainingDisplay(f"{label} {agent.env_id or ''}".strip(), agent.steps, until, console)
    agent.trainer.learner.while_compiling = display.compiling
    return display


def callbacks_for(run: Path, agent: Any, stack: ExitStack, until: int) -> list[Any]:
    """Who watches a run: the terminal, and TensorBoard where it is installed."""
    from cdqn.integrations.tensorboard import tensorboard_if_installed
    from cdqn.runs.process import tune_process

    tune_process(agent.spec)
    callbacks: list[Any] = [stack.enter_context(display_of(agent, until))]
    if board := tensorboard_if_installed(run / "tensorboard"):
        stack.callback(board.close)
        callbacks.append(board)
    return callbacks


def conclude(run: Path, outcome: Any) -> int:
    """The picture, and what to do next."""
    from cdqn.report.learning_curve import learning_curve
    from cdqn.report.runs import read_run
    from cdqn.storage.files import writing

    picture = run / "learning_curve.png"
    with writing(picture):
        learning_curve(read_run(run), picture)
    say(console, f"run folder: {run}")
    say(console, f"learning curve: {picture}")
    if not outcome.finished:
        say(console, f"stopped at step {outcome.steps:,}: `cdqn resume {run}` continues from there")
        return INTERRUPTED
    return 0
