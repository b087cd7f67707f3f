"""Help of a command: its flags in groups, each with the sentence that stands under its field."""

import ast
import dataclasses
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from tyro.conf import Positional

GROUPS: dict[str, tuple[str, ...]] = {
    "run": (
        *("dataset", "env", "env_id", "env_ids", "algorithms", "algorithm", "vary", "preset", "same_settings"),
        *("updates", "epochs", "steps", "until", "seed", "seeds", "space", "trials", "prune"),
        *("jobs", "on", "cpus_per_run", "gpus_per_run", "device", "compile"),
    ),
    "task": (
        *("env_kwargs", "wrapper", "num_envs", "normalize_observations", "normalize_rewards", "reward_clip"),
        *("environment_timeout_seconds",),
    ),
    "learning": (
        *("gamma", "horizon_multiplier", "n_step", "learning_rate", "learning_rate_decay", "learning_rate_drops"),
        *("batch_size", "update_period_steps", "warmup_steps", "target_period_updates", "target_copy", "double_q"),
        *("loss", "value_transform", "gradient_clip_norm", "adam_epsilon"),
    ),
    "exploration": (
        *("exploration", "epsilon_middle", "epsilon_middle_fraction", "epsilon_final", "epsilon_final_fraction"),
    ),
    "replay": (
        *("replay", "memory_size", "eviction", "discard_fraction", "alpha", "beta_start", "priority_scheme"),
        *("floor_divisor", "initial_priority", "raise_predecessor", "priority_epsilon"),
    ),
    "network": ("hidden", "dueling", "channels", "initial_weights", "network"),
    "Atari": ("frame_size", "sticky_actions", "time_limit_steps"),
    "output": (
        *("out", "overwrite", "log_period_steps", "checkpoint_period_steps", "evaluation_period_steps"),
        *("evaluation_episodes", "candidate_period_steps"),
    ),
}
"""What `cdqn train` and `cdqn compare` have; what is in none of them stands before."""


PLACEHOLDERS = {"env_kwargs": "JSON", "learning_rate_drops": "SHARE FACTOR …", "frame_size": "HEIGHT WIDTH"}
"""What stands for a value, where its type says too little."""


class Flag(NamedTuple):
    """A field of a command, as a user meets it."""

    name: str
    kind: Any
    default: Any
    sentence: str
    positional: bool

    def typed(self) -> str:
        """As one types it."""
        flag = f"--{self.name.replace('_', '-')}"
        if self.positional:
            return self.name.replace("_ids", " …").removesuffix("_id").upper()
        if self.kind is bool:
            return f"{flag}, --no-{flag[2:]}"
        return f"{flag} {PLACEHOLDERS.get(self.name) or _placeholder(self.kind)}"

    def explained(self) -> str:
        """Its sentence and default; where the default is known, what the sentence says of it is left out."""
        shown = {True: "on", False: "off"}[self.default] if self.kind is bool else _shown(self.default)
        if shown is None:
            return self.sentence
        return f"{self.sentence.partition(' Default:')[0]} [default: {shown}]"


def flags_of(command: type[Any], defaults: Mapping[str, Any]) -> dict[str, Flag]:
    """Every flag of a command, those of the dataclasses in it included; `defaults` go before the fields' own."""
    flags: dict[str, Flag] = {}
    hints, said = get_type_hints(command, include_extras=True), sentences(command)
    for field in dataclasses.fields(command):
        kind, marks = _bare(hints[field.name])
        if dataclasses.is_dataclass(kind):
            flags |= flags_of(kind, defaults)  # type: ignore[arg-type]
            continue
        default = defaults.get(field.name, None if field.default is dataclasses.MISSING else field.default)
        positional = any(mark in marks for mark in get_args(Positional[int])[1:])
        flags[field.name] = Flag(field.name, kind, default, said.get(field.name, ""), positional)
    return flags


def sentences(kind: type[Any]) -> dict[str, str]:
    """What stands under each field of a dataclass."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found = {}
    for field, below in pairwise(getattr(body, "body", ())):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found


def describe_command(name: str, command: type[Any], defaults: Mapping[str, Any], note: str) -> Iterator[RenderableType]:
    """The parts of `cdqn COMMAND --help`."""
    flags = flags_of(command, defaults)
    if "algorithms" in flags:
        flags.pop("algorithm", None)  # it takes several
    positional = " ".join(flag.typed() for flag in flags.values() if flag.positional)
    yield Text(f"cdqn {name} {positional} [flags]".replace("  ", " "), "bold")
    yield Padding(Text((command.__doc__ or "").strip()), (0, 0, 1, 0))
    if note:
        yield Padding(Text(note), (0, 0, 1, 0))
    grouped = {member for members in GROUPS.values() for member in members}
    groups = {"": [name for name in flags if name not in grouped]} if _is_grouped(flags) else {"": list(flags)}
    if _is_grouped(flags):
        groups |= {title: [name for name in members if name in flags] for title, members in GROUPS.items()}
    for title, members in groups.items():
        if title:
            yield Text(title[0].upper() + title[1:], "bold underline")
        for member in members:
            yield Text(f"  {flags[member].typed()}", "cyan")
            yield Padding(Text(flags[member].explained()), (0, 0, 0, 6))
        if members:
            yield ""


def _is_grouped(flags: Mapping[str, Flag]) -> bool:
    return "learning_rate" in flags


def _bare(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations, and these."""
    return (get_args(kind)[0], kind.__metadata__) if get_origin(kind) is Annotated else (kind, ())


def _placeholder(kind: Any) -> str:
    """What stands for a value."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, list):
        inner, *more = get_args(kind)
        if more == [...] or get_origin(kind) is list:
            return f"{_placeholder(inner)} …"
        return " ".join(map(_placeholder, (inner, *more)))
    return {bool: "True|False", int: "N", float: "NUMBER", str: "NAME", Path: "PATH"}[kind]


def _shown(value: Any) -> str | None:
    """A default as one would type it; None for one that is not set."""
    if isinstance(value, tuple | list):
        return " ".join(filter(None, map(_shown, value))) or None
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None else str(value)
