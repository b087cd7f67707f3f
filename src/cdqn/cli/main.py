"""The command line: finds the command, parses its flags, and turns errors into one line and an exit code.

Errors that a user can fix are one line on stderr and exit code 1; a wrong command line is exit code 2;
an interrupted run is exit code 130.
"""

import errno
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import tyro

from cdqn.cli.common import INTERRUPTED, console, errors
from cdqn.cli.evaluate import Evaluate, Play
from cdqn.cli.reproduce import Demo, List, Report, Reproduce
from cdqn.cli.several import Compare, Suite
from cdqn.cli.sweep import Sweep
from cdqn.cli.train import Resume, Train
from cdqn.errors import CdqnError
from cdqn.report.terminal import say
from cdqn.storage.named_code import PIECES, all_named, import_pieces

COMMANDS: dict[str, type[Any]] = {
    "train": Train,
    "compare": Compare,
    "suite": Suite,
    "sweep": Sweep,
    "evaluate": Evaluate,
    "resume": Resume,
    "play": Play,
    "list": List,
    "demo": Demo,
    "reproduce": Reproduce,
    "report": Report,
}

FLAGS_OF_OTHERS = {
    "--lr": "--learning-rate",
    "--total-timesteps": "--steps",
    "--timesteps": "--steps",
    "--n-timesteps": "--steps",
    "--env": "an argument of its own, as in cdqn train CartPole-v1",
    "--env-id": "an argument of its own, as in cdqn train CartPole-v1",
    "--algo": "--algorithm",
    "--buffer-size": "--memory-size",
    "--learning-starts": "--warmup-steps",
    "--train-freq": "--update-period-steps",
    "--train-frequency": "--update-period-steps",
    "--target-update-interval": "--target-period-updates",
    "--target-network-frequency": "--target-period-updates",
    "--exploration-fraction": "--epsilon-final-fraction",
    "--exploration-final-eps": "--epsilon-final",
    "--end-e": "--epsilon-final",
    "--max-grad-norm": "--gradient-clip-norm",
    "--n-envs": "--num-envs",
    "--net-arch": "--hidden",
    "--eval-freq": "--evaluation-period-steps",
    "--n-eval-episodes": "--evaluation-episodes",
    "--eval-episodes": "--evaluation-episodes",
    "--n-trials": "--trials",
    "--n-jobs": "--jobs",
}
"""Flags of stable-baselines3's zoo and of CleanRL, and what they are called here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `cdqn`; returns its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = _parse(arguments)
        return 0 if command is None else int(command.run())
    except CdqnError as error:
        say(errors, f"cdqn: {error}", "red")
        return 1
    except MemoryError as error:
        say(errors, f"cdqn: out of memory ({error}): lower --memory-size", "red")
        return 1
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        say(errors, f"cdqn: a path is too long for this system, {str(error.filename)[:60]}…: choose another", "red")
        return 1
    except KeyboardInterrupt:
        say(errors, "cdqn: interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, say `head`, has seen enough
        return 0


def entry() -> None:
    """The console script."""
    warnings.showwarning = _show_warning
    sys.exit(main())


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """One line, without the line of code, for whoever reads a terminal."""
    say(errors, f"cdqn: {message}" if category is UserWarning else f"{category.__name__}: {message}", "yellow")


def _parse(arguments: list[str]) -> Any:
    """The command with its flags, or None after printing the help."""
    from cdqn import __version__
    from cdqn.config import PREPROCESSING
    from cdqn.envs import atari_game, kind_of
    from cdqn.presets import DEFAULT_PRESETS, default_preset, get_preset

    if not arguments or arguments[0] in ("-h", "--help"):
        console.print(_help(), soft_wrap=True)
        return None
    if arguments[0] == "--version":
        print(__version__)
        return None
    name, *rest = arguments
    for flag in (argument.partition("=")[0].replace("_", "-") for argument in rest):
        if flag in FLAGS_OF_OTHERS and name in COMMANDS:
            say(errors, f"cdqn: there is no flag {flag}: here it is {FLAGS_OF_OTHERS[flag]}", "red")
            raise SystemExit(2)
    if name not in COMMANDS:
        say(errors, f"cdqn: there is no command {name!r}: choose from {', '.join(COMMANDS)}", "red")
        raise SystemExit(2)
    kind = COMMANDS[name]
    if kind not in (Train, Compare, Sweep):
        return tyro.cli(kind, prog=f"cdqn {name}", args=rest)
    rest = _gathered(rest, "--wrapper")
    named_preset = _flag(rest, "--preset")
    # Until the environment has been read its kind is unknown; what --help shows are the defaults of most.
    command = _parse_with_preset(name, rest, named_preset or DEFAULT_PRESETS["vector"])
    if named_preset is None:  # the environment has been read now, and has a preset by default
        shown = kind_of(command.env_id, command.config.environment_kwargs, all_named("wrapper", command.config.wrapper))
        command = _parse_with_preset(name, rest, default_preset(shown))
    elif get_preset(named_preset).kind == "atari" and not atari_game(command.env_id):
        command = _parse_with_preset(name, rest, named_preset, dict.fromkeys(PREPROCESSING))
    command.given = _given(rest, command.config)
    return command


def _given(arguments: Sequence[str], config: Any) -> dict[str, Any]:
    """The settings that the command line names, with the values that the parser found: the rest are defaults."""
    named = {argument.partition("=")[0].removeprefix("--").replace("-", "_") for argument in arguments}
    return {name: value for name, value in vars(config).items() if name in named or f"no_{name}" in named}


def _parse_with_preset(
    name: str, arguments: Sequence[str], preset: str | None, unset: Mapping[str, None] | None = None
) -> Any:
    """The command; flags that are not given mean what the preset says."""
    from cdqn.presets import make_config

    typed: dict[str, Any] = {piece: _flag(arguments, f"--{piece}") for piece in PIECES}
    wrappers = arguments[arguments.index("--wrapper") + 1 :] if "--wrapper" in arguments else []
    import_pieces(typed | {"wrapper": list(wrappers)})
    algorithm = typed["algorithm"] or "cdqn"
    own = getattr(COMMANDS[name], "defaults", {})
    config = make_config(algorithm, preset, **own, **(unset or {}))
    default = COMMANDS[name](env_id=tyro.MISSING, preset=preset, config=config)
    return tyro.cli(COMMANDS[name], prog=f"cdqn {name}", args=arguments, default=default)


def _gathered(arguments: Sequence[str], flag: str) -> list[str]:
    """A flag that can be given several times, once, at the end, with all of its values."""
    rest, values = [], []
    waiting = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if waiting or (name == flag and equals):
            values.append(argument if waiting else value)
            waiting = False
        elif name == flag:
            waiting = True
        else:
            rest.append(argument)
    return rest + ([flag] if values or waiting else []) + values


def _flag(arguments: Sequence[str], flag: str) -> Any:
    """The value of a flag, before the parser proper has seen it."""
    for position, argument in enumerate(arguments):
        if argument == flag:
            return next(iter(arguments[position + 1 :]), None)
        if argument.startswith(flag + "="):
            return argument.removeprefix(flag + "=")
    return None


def _help() -> str:
    lines = [
        "[bold]cdqn[/] — Q-learning that does not blow up: C-DQN, with DQN and the residual gradient beside it",
        "",
    ]
    for name, kind in COMMANDS.items():
        lines.append(f"  [bold]cdqn {name:<10}[/]{(kind.__doc__ or '').strip()}")
    lines += ["", "  cdqn COMMAND --help shows the flags of a command; cdqn --version the version.", ""]
    lines += ["  cdqn train CartPole-v1", "  cdqn compare CartPole-v1 --algorithms cdqn,dqn --seeds 3 --steps 50000"]
    return "\n".join(lines)
