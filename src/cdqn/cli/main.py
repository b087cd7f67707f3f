"""The command line: finds the command, parses its flags, and turns errors into one line and an exit code.

Errors that a user can fix are one line on stderr and exit code 1; a wrong command line is exit code 2;
an interrupted run is exit code 130.
"""

import dataclasses
import difflib
import errno
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import tyro

from cdqn.cli.common import INTERRUPTED, console, errors
from cdqn.cli.compare import Compare
from cdqn.cli.evaluate import Evaluate, Play
from cdqn.cli.offline import Offline
from cdqn.cli.reproduce import Demo, List, Report, Reproduce
from cdqn.cli.several import Suite
from cdqn.cli.sweep import Sweep
from cdqn.cli.train import Resume, Train
from cdqn.errors import CdqnError
from cdqn.report.terminal import say
from cdqn.storage.named_code import import_pieces, named_wrappers

COMMANDS: dict[str, type[Any]] = {
    "train": Train,
    "offline": Offline,
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

WITH_SETTINGS = (Train, Offline, Compare, Sweep)
"""Commands whose flags are those of a run, too."""

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

    if not arguments or arguments[0] in ("-h", "--help"):
        console.print(_help(), soft_wrap=True)
        return None
    if arguments[0] == "--version":
        print(__version__)
        return None
    name, *rest = arguments
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(COMMANDS)}"
        say(errors, f"cdqn: there is no command {name!r}: {hint}", "red")
        raise SystemExit(2)
    for flag in (argument.partition("=")[0].replace("_", "-") for argument in rest):
        if flag in FLAGS_OF_OTHERS and not (flag == "--env" and _takes_env(COMMANDS[name])):
            say(errors, f"cdqn: there is no flag {flag}: here it is {FLAGS_OF_OTHERS[flag]}", "red")
            raise SystemExit(2)
    if "-h" in rest or "--help" in rest:
        _print_help(name, rest)
        return None
    kind = COMMANDS[name]
    if kind not in WITH_SETTINGS:
        return tyro.cli(kind, prog=f"cdqn {name}", args=rest)
    return _with_settings(tyro.cli(kind, prog=f"cdqn {name}", args=_gathered(rest, "--wrapper")), rest)


def _takes_env(command: type[Any]) -> bool:
    """Whether it has a flag --env: those that take a run folder do."""
    return any(field.name == "env" for field in dataclasses.fields(command))


def _with_settings(command: Any, arguments: Sequence[str]) -> Any:
    """The command with the settings that were typed; for one run also with its preset and its configuration."""
    from cdqn.envs import kind_of
    from cdqn.presets import default_preset, make_config, unset_for

    command.given = _typed(arguments, command.config)
    import_pieces(command.given)
    if isinstance(command, Train):
        if command.preset is None:
            wrappers = named_wrappers(command.config.wrapper)
            command.preset = default_preset(kind_of(command.env_id, command.config.environment_kwargs, wrappers))
        settings = {"algorithm": "cdqn"} | unset_for(command.env_id, command.preset) | command.given
        command.config = make_config(settings.pop("algorithm"), command.preset, **settings)
    return command


def _typed(arguments: Sequence[str], config: Any) -> dict[str, Any]:
    """The settings that the command line names, with the values that the parser found: the rest are defaults."""
    flags = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    named = {flag.removeprefix("--").replace("-", "_") for flag in flags}
    return {name: value for name, value in vars(config).items() if name in named or f"no_{name}" in named}


def _print_help(name: str, arguments: Sequence[str]) -> None:
    """The flags of a command, with the defaults of the preset at hand."""
    from cdqn.cli.help import describe_command
    from cdqn.envs import default_preprocessing, kind_of
    from cdqn.presets import DEFAULT_PRESETS, default_preset, make_config, unset_for

    kind, defaults, note = COMMANDS[name], {}, ""
    if kind in WITH_SETTINGS:
        env_id = next((argument for argument in arguments[:1] if not argument.startswith("-")), None)
        usual = DEFAULT_PRESETS["vector"] if env_id is None else default_preset(kind_of(env_id))
        preset = _flag(arguments, "--preset") or usual
        algorithm = _flag(arguments, "--algorithm") or "cdqn"
        import_pieces({"algorithm": algorithm})
        config = make_config(algorithm, preset, **(unset_for(env_id, preset) if env_id else {})).resolved()
        defaults = vars(config.filled(default_preprocessing(env_id) if env_id else {})) | getattr(kind, "defaults", {})
        whose = f", which is for {env_id or 'most environments'}" if preset == usual else ""
        note = f"Defaults are those of the preset {preset}{whose}."
    for part in describe_command(name, kind, defaults, note):
        console.print(part, highlight=False)


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


FIRST = {
    "cdqn train CartPole-v1": "train an agent: live progress, a run folder, a picture",
    "cdqn evaluate runs/CartPole-v1-cdqn-seed0": "play whole episodes with it",
    "cdqn compare CartPole-v1 --seeds 3": "C-DQN, DQN and the residual gradient side by side",
}
"""What a newcomer needs."""


def _help() -> str:
    lines = ["[bold]cdqn[/] — Q-learning that does not blow up: C-DQN, with DQN beside it", "", "Begin with"]
    lines += [f"  [bold]{command}[/]\n      {what}" for command, what in FIRST.items()]
    lines += ["", "All commands"]
    lines += [f"  [bold]{name:<11}[/]{_first_clause(kind)}" for name, kind in COMMANDS.items()]
    lines += ["", "cdqn COMMAND --help explains its flags; cdqn list shows what there is to train."]
    return "\n".join(lines)


def _first_clause(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().partition(";")[0].partition(":")[0].rstrip(".")
