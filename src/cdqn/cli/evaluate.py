"""`cdqn evaluate` and `cdqn play`: the policy of a run.

The fields of a class are its flags, `run` does the work and returns the exit code. What a command needs is imported
where it runs: the others need not wait for it.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from cdqn.cli.common import AllowImport, Env, EnvFlags, console, errors, load_agent
from cdqn.errors import ConfigError
from cdqn.report.terminal import say


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
    best: bool = False
    """The policy of the run's best evaluation, where it was trained with --evaluation-period-steps."""
    env: EnvFlags = field(default_factory=Env)
    json: bool = False
    """Print one JSON object instead of a sentence."""
    allow_import: AllowImport = ()
    """A module of code that the run names, module:Name, which may be imported; can be given several times."""

    def run(self) -> int:
        if self.protocol is None:
            return self._policy()
        if self.best or self.env != Env():
            raise ConfigError("--protocol tests the run's candidates on its own environment: drop --best and --env")
        return self._protocol()

    def _policy(self) -> int:
        from cdqn.cli.console import CountDisplay
        from cdqn.training.events import Evaluated

        agent = load_agent(self.run_folder, self.allow_import, self.env, self.best)
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
    best: bool = False
    """The policy of the run's best evaluation, where it was trained with --evaluation-period-steps."""
    env: EnvFlags = field(default_factory=Env)
    allow_import: AllowImport = ()
    """A module of code that the run names, module:Name, which may be imported; can be given several times."""

    def run(self) -> int:
        from cdqn.cli.playback import play

        agent = load_agent(self.run_folder, self.allow_import, self.env, self.best)
        returns = play(agent, self.episodes, self.epsilon, self.seed, self.video, self.max_steps)
        say(console, f"return{'s' if len(returns) > 1 else ''}: " + ", ".join(f"{value:g}" for value in returns))
        if self.video:
            say(console, f"wrote {self.video}")
        return 0
