"""The commands of `cdqn`: the fields of a class are its flags, `run` does the work and returns the exit code.

What a command needs is imported where it runs: the others need not wait for it.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from rich.console import Console
from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction, arg

from cdqn.algorithms import ALGORITHMS, find_algorithm
from cdqn.config import Config, code_names
from cdqn.errors import CheckpointError, ConfigError
from cdqn.report.terminal import say
from cdqn.storage.named_code import import_named

console = Console()
errors = Console(stderr=True, soft_wrap=True, highlight=False)

ConfigFlags = OmitArgPrefixes[Annotated[Config, arg(name="")]]
AllowImport = UseAppendAction[tuple[str, ...]]
INTERRUPTED = 130
MOST_SEEDS = 1000
"""More are taken for a slip of the hand: each is a run of its own."""


@dataclass
class Train:
    """Train an agent; leaves a run folder with its metrics, a checkpoint, a final evaluation and a picture."""

    env_id: Positional[str]
    """A Gymnasium id such as CartPole-v1, an Atari game such as Pong, or module:id for one of your own."""
    preset: str | None = None
    """A named set of settings (`cdqn list`); flags go before it. Default: that of the environment's kind."""
    until: int | None = None
    """Stop at this step of the budget, as if interrupted there; `cdqn resume` continues."""
    out: Path | None = None
    """The run folder; default runs/ENV-ALGORITHM-seedSEED."""
    config: ConfigFlags = field(default_factory=Config)

    def run(self) -> int:
        from cdqn.agent import Agent
        from cdqn.runs.runner import train_run

        self.config.require_learning()
        until = self.config.steps if self.until is None else self.until
        if not 1 <= until <= self.config.steps:
            raise ConfigError(f"--until {until} is outside the budget of {self.config.steps} steps: change --steps")
        agent = Agent.from_config(self.env_id, self.config, self.preset)
        run = self.out or _default_folder(f"{self.env_id}-{self.config.algorithm}-seed{self.config.seed}")
        _announce(agent, self.preset)
        with ExitStack() as stack:
            outcome = train_run(agent, run, _callbacks(run, agent, stack, until), until)
        return _conclude(run, outcome)


@dataclass
class Resume:
    """Resume a run, a comparison or a suite exactly where its last checkpoint left it."""

    run_folder: Positional[Path]
    """A folder made by `cdqn train`, `cdqn compare`, `cdqn suite` or Agent.save."""
    steps: int | None = None
    """Train up to this step instead of the run's own budget."""
    jobs: int | None = None
    """Processes for a comparison or a suite; default: one for each core."""
    allow_import: AllowImport = ()
    """A module that the run's environment, module:Id, may import; can be given several times."""

    def run(self) -> int:
        from cdqn.runs import suite
        from cdqn.runs.comparison import is_comparison
        from cdqn.runs.runner import resume_run

        if is_comparison(self.run_folder):
            return _compare(self.run_folder, self.jobs, self.allow_import)
        if suite.is_suite(self.run_folder):
            return _suite(self.run_folder, suite.planned_runs(self.run_folder), self.jobs)
        with ExitStack() as stack:
            outcome = resume_run(
                self.run_folder,
                self.steps,
                callbacks=lambda agent, until: _callbacks(self.run_folder, agent, stack, until),
                allow_import=self.allow_import,
            )
        return _conclude(self.run_folder, outcome)


@dataclass
class Compare:
    """Train several algorithms with several seeds, in parallel; leaves a table and a picture."""

    env_id: Positional[str]
    """A Gymnasium id such as CartPole-v1."""
    algorithms: str = ",".join(ALGORITHMS)
    """Which ones, separated by commas; module:Class for one of your own."""
    seeds: int = 5
    """Runs of each algorithm, with seeds from --seed upwards."""
    jobs: int | None = None
    """Processes at a time; default: one for each core."""
    preset: str | None = None
    """A named set of settings (`cdqn list`); flags go before it."""
    same_settings: bool = False
    """Give all algorithms the settings of the first one, in place of each one's own defaults."""
    out: Path | None = None
    """The folder of the comparison; default runs/compare-ENV."""
    config: ConfigFlags = field(default_factory=Config)

    given: ClassVar[dict[str, Any]] = {}
    """Settings named on the command line; they hold for every algorithm on which they act."""

    def run(self) -> int:
        from cdqn.envs import module_of
        from cdqn.runs.comparison import create_comparison

        configs = self.configs()
        folder = self.out or _default_folder(f"compare-{self.env_id}")
        create_comparison(folder, self.env_id, configs, self.preset)
        return _compare(folder, self.jobs, [module_of(self.env_id) or ""])

    def configs(self) -> list[Config]:
        """One for each run: an algorithm's own defaults, or those of the first one, and what was given."""
        from cdqn.presets import make_config, without_idle

        algorithms = _names(self.algorithms)
        for name in algorithms:
            import_pieces({"algorithm": name})
            find_algorithm(name)
        if self.seeds < 1 or len(set(algorithms)) < len(algorithms):
            raise ConfigError("compare needs at least one seed, and each algorithm once")
        if self.seeds > MOST_SEEDS:
            raise ConfigError(f"seeds is {self.seeds}: at most {MOST_SEEDS} runs of an algorithm are trained at a time")
        first = make_config(algorithms[0], self.preset, **without_idle(algorithms[0], self.given))
        settings = dataclasses.asdict(first) if self.same_settings else self.given
        configs = []
        for name in algorithms:
            acting = without_idle(name, {key: value for key, value in settings.items() if key != "algorithm"})
            config = make_config(name, self.preset, **acting)
            configs += [dataclasses.replace(config, seed=config.seed + i).resolved() for i in range(self.seeds)]
        for config in configs:
            config.require_learning()
        return configs


@dataclass
class Suite:
    """Train each algorithm, with its own default settings, on eleven well-known tasks; a table and a picture."""

    scale: Literal["smoke", "laptop"] = "laptop"
    """smoke: does it run (about a minute a seed); laptop: about 50 000 steps a task (hours on two cores)."""
    algorithms: str = ",".join(ALGORITHMS)
    """Which ones, separated by commas."""
    tasks: str | None = None
    """Which ones, separated by commas; default: all of them."""
    seeds: int = 5
    """Runs of each algorithm on each task, with seeds from --seed upwards."""
    seed: int = 0
    """The first seed."""
    jobs: int | None = None
    """Processes at a time; default: one for each core."""
    out: Path = Path("runs/suite")
    """The folder of the suite. One that exists is continued."""

    def run(self) -> int:
        from cdqn.runs.suite import open_suite, plan_suite
        from cdqn.tasks.suite import TASKS

        tasks = list(TASKS) if self.tasks is None else _names(self.tasks)
        plan = plan_suite(self.scale, tasks, _names(self.algorithms), self.seed, self.seeds)
        open_suite(self.out, self.scale, plan)
        return _suite(self.out, plan, self.jobs)


def import_pieces(settings: Mapping[str, Any]) -> None:
    """Import what the user has typed as module:Name: an algorithm, a network, a replay memory or an exploration."""
    for name in code_names(settings):
        import_named(name)


def _names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",")]


@dataclass
class Evaluate:
    """Play whole episodes with the policy of a run."""

    run_folder: Positional[Path]
    """A run folder."""
    episodes: int | None = None
    """Episodes to play; default 100, or 400 for each part of the protocol."""
    epsilon: float | None = None
    """Share of random actions; default 0, or 0.01 with the protocol."""
    seed: int | None = None
    """Seed of the episodes; default: a function of the run's seed."""
    protocol: Literal["paper"] | None = None
    """Validate the run's best three candidates, test the winner (App. B.4), write RUN/protocol.json."""
    json: bool = False
    """Print one JSON object instead of a sentence."""
    allow_import: AllowImport = ()
    """A module that the run's environment, module:Id, may import; can be given several times."""

    def run(self) -> int:
        return self._policy() if self.protocol is None else self._protocol()

    def _policy(self) -> int:
        from cdqn.cli.console import CountDisplay
        from cdqn.training.events import Evaluated

        agent = _load(self.run_folder, self.allow_import)
        episodes = 100 if self.episodes is None else self.episodes
        with CountDisplay("evaluating", episodes, errors) as display:
            result = agent.evaluate(episodes, self.epsilon or 0.0, self.seed, on_episode=display.advance)
        if self.json:
            print(json.dumps(Evaluated(agent.steps, result).row()))
        else:
            label = agent.config.algorithm_class.label
            sticky = agent.config.sticky_actions
            played = agent.env_id if sticky is None else f"{agent.env_id}, sticky actions {sticky:g}"
            say(console, f"{played}, {label} after {agent.steps:,} steps: return {result}")
        return 0

    def _protocol(self) -> int:
        from cdqn.cli.console import CountDisplay
        from cdqn.report.protocol import render_protocol
        from cdqn.runs.folders import locked_run
        from cdqn.runs.protocol import EPISODES, EPSILON, run_protocol

        with locked_run(self.run_folder), CountDisplay("validating and testing", 1, errors) as display:
            content = run_protocol(
                self.run_folder,
                EPISODES if self.episodes is None else self.episodes,
                EPSILON if self.epsilon is None else self.epsilon,
                self.seed,
                on_begin=lambda total: display.set(0, total),
                on_episode=display.advance,
                allow_import=self.allow_import,
            )
        if self.json:
            print(json.dumps(content))
        else:
            console.print(render_protocol(content))
            say(console, f"wrote {self.run_folder / 'protocol.json'}")
        return 0


@dataclass
class Play:
    """Watch the policy of a run, in a window or as a video."""

    run_folder: Positional[Path]
    """A run folder."""
    video: Path | None = None
    """Write the episodes to this .mp4 or .gif instead of opening a window."""
    episodes: int = 1
    """Episodes to play."""
    max_steps: int | None = None
    """Steps after which an episode is cut off; default: played to its end."""
    epsilon: float = 0.0
    """Share of random actions."""
    seed: int = 0
    """Seed of the episodes."""
    allow_import: AllowImport = ()
    """A module that the run's environment, module:Id, may import; can be given several times."""

    def run(self) -> int:
        from cdqn.cli.playback import play

        agent = _load(self.run_folder, self.allow_import)
        returns = play(agent, self.episodes, self.epsilon, self.seed, self.video, self.max_steps)
        say(console, "returns: " + " ".join(f"{value:g}" for value in returns))
        if self.video:
            say(console, f"video: {self.video}")
        return 0


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
        from cdqn.experiments.demo import run_demo
        from cdqn.report.demo import render_demo, write_demo
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


def _announce(agent: Any, preset: str | None) -> None:
    """What a user should know before a run of frames: the preset, the emulator's randomness, the memory."""
    from cdqn.training.build import memory_estimate, readable_bytes

    if agent.spec.kind == "atari":
        config = agent.config
        size = readable_bytes(memory_estimate(agent.spec, config))
        console.print(
            f"preset {preset}, sticky actions {config.sticky_actions:g}; the replay memory of "
            f"{config.memory_size:,} transitions will take about {size}",
            highlight=False,
        )


def _default_folder(name: str) -> Path:
    """Below runs/, with the characters of an environment's id that mean something in a path replaced."""
    return Path("runs") / name.replace("/", "-").replace(":", "-")


def _callbacks(run: Path, agent: Any, stack: ExitStack, until: int) -> list[Any]:
    """Who watches a run: the terminal, and TensorBoard where it is installed."""
    from cdqn.cli.console import TrainingDisplay
    from cdqn.integrations.tensorboard import tensorboard_if_installed
    from cdqn.runs.process import tune_process

    tune_process(agent.spec)
    label = agent.config.algorithm_class.label
    display = TrainingDisplay(f"{label} {agent.env_id or ''}", agent.steps, until, console)
    callbacks: list[Any] = [stack.enter_context(display)]
    if board := tensorboard_if_installed(run / "tensorboard"):
        stack.callback(board.close)
        callbacks.append(board)
    return callbacks


def _load(run: Path, allow_import: Iterable[str]) -> Any:
    """The agent of a run, after a word about a checkpoint that could not be read."""
    from cdqn.runs.loading import load_run

    agent, restored = load_run(run, allow_import=allow_import)
    if restored.damage:
        say(errors, f"cdqn: {restored.damage}", "yellow")
    return agent


def _conclude(run: Path, outcome: Any) -> int:
    """The picture, and what to do next."""
    from cdqn.report.figures import learning_curve
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


def _compare(folder: Path, jobs: int | None, allow_import: Iterable[str]) -> int:
    import numpy as np

    from cdqn.report import figures, tables
    from cdqn.report.runs import differing_settings, group_by_algorithm
    from cdqn.runs.comparison import planned_runs

    plan = planned_runs(folder, allow_import)
    outcomes = _run_all(folder, plan, jobs, f"`cdqn resume {folder}` resumes it")
    if outcomes is None:
        return INTERRUPTED
    runs, problems = _readable_runs(folder, outcomes)
    if runs:
        rows = tables.comparison_table(runs, np.random.default_rng(0))
        console.print(tables.render(rows))
        if differences := differing_settings(group_by_algorithm(runs)):
            say(console, f"{differences} (--same-settings for equal ones)")
        tables.write_csv(folder / "comparison.csv", rows)
        tables.write_curves_csv(folder / "curves.csv", runs)
        figures.comparison(runs, folder / "comparison.png")
        _tell_written(folder, "comparison.png", "comparison.csv", "curves.csv")
    return _tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def _suite(folder: Path, plan: Any, jobs: int | None) -> int:
    import numpy as np

    from cdqn.report import suite
    from cdqn.storage.files import writing

    outcomes = _run_all(folder, plan, jobs, f"`cdqn resume {folder}` resumes it")
    if outcomes is None:
        return INTERRUPTED
    runs = suite.read_suite(folder)
    if runs:
        results = suite.results_of(runs)
        console.print(suite.render(results, np.random.default_rng(0)))
        for line in suite.verdict(results, np.random.default_rng(0)):
            say(console, line)
        with writing(folder):
            suite.write_scores(folder / "suite.csv", results)
            suite.write_evaluations(folder / "evaluations.csv", runs)
            suite.suite_picture(runs, folder / "suite.png")
        _tell_written(folder, "suite.png", "suite.csv", "evaluations.csv")
    problems = {outcome.name: outcome.problem for outcome in outcomes if not outcome.finished}
    return _tell_missing(problems, f"`cdqn resume {folder}` tries again what is missing")


def _run_all(folder: Path, plan: Any, jobs: int | None, resume: str) -> Any:
    """The outcomes of all runs, shown while they last; None after an interruption."""
    from cdqn.cli.console import RunsDisplay
    from cdqn.runs.folders import locked
    from cdqn.runs.run_pool import run_all

    totals = {name: run.config.steps for name, run in plan.items()}
    try:
        with locked(folder), RunsDisplay(totals, console) as display:
            return run_all(folder, plan, jobs, display)
    except KeyboardInterrupt:
        say(console, f"stopped: {resume}")
        return None


def _tell_written(folder: Path, *names: str) -> None:
    for name in names:
        say(console, f"wrote {folder / name}")


def _tell_missing(problems: dict[str, Any], remedy: str) -> int:
    """What is not complete, and why; the exit code."""
    for name, problem in problems.items():
        say(errors, f"cdqn: {name} is not complete: {problem}", "red")
    if problems:
        say(errors, f"cdqn: {remedy}", "red")
    return 1 if problems else 0


def _readable_runs(folder: Path, outcomes: Any) -> tuple[list[Any], dict[str, str]]:
    """The runs of a comparison that have something to show, and why those that are not complete are not."""
    from cdqn.report.runs import read_run

    runs: list[Any] = []
    problems = {outcome.name: outcome.problem for outcome in outcomes if not outcome.finished}
    for outcome in outcomes:
        try:
            if (folder / outcome.name / "config.json").exists():
                runs.append(read_run(folder / outcome.name))
        except CheckpointError as error:
            problems[outcome.name] = str(error)
    return runs, problems
