"""Code that a setting names, module:Name: an algorithm, a network, a replay memory or an exploration of the user's.

Importing a module runs it. So a name becomes an object only by the user's own word: typed on the command line, given
as an object in Python, or allowed for a folder with `allow_import`. What a folder names is never imported by itself.

A wrapper may have arguments, module:Name(bins=5): literals, which are read and never evaluated.
"""

import ast
import functools
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from cdqn.errors import CheckpointError, ConfigError

PIECES = ("algorithm", "network", "replay", "exploration")
"""Settings that can be code of the user's, module:Name; in Python the class or function itself."""

HARMLESS_WRAPPERS = frozenset(
    [
        "ClipAction",
        "ClipReward",
        "DelayObservation",
        "DiscretizeAction",
        "DiscretizeObservation",
        "DtypeObservation",
        "FilterObservation",
        "FlattenObservation",
        "FrameStackObservation",
        "GrayscaleObservation",
        "MaxAndSkipObservation",
        "RescaleAction",
        "RescaleObservation",
        "ReshapeObservation",
        "ResizeObservation",
        "StickyAction",
        "TimeAwareObservation",
        "TimeLimit",
    ]
)
"""Of gymnasium.wrappers: those that open no file and call nothing, whatever their arguments. A folder may name them."""

_objects: dict[str, Any] = {}
"""What the user has named so far, in this process."""


@dataclass(frozen=True)
class WithArguments:
    """A wrapper and what it is called with, after the environment."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> "WithArguments":
        """From module:Name(literals)."""
        name, parenthesis, rest = text.partition("(")
        if not parenthesis:
            return cls(name)
        try:
            call = ast.parse(f"_({rest}", mode="eval").body
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                raise ValueError("it is no single call")
            args = tuple(map(ast.literal_eval, call.args))
            kwargs = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords if word.arg}
            if len(kwargs) < len(call.keywords):
                raise ValueError("** is not read")
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
            raise ConfigError(
                f"wrapper {text[:200]!r} cannot be read: its arguments must be numbers, texts, lists and such, "
                "as in gymnasium.wrappers:TimeLimit(max_episode_steps=200)"
            ) from error
        return cls(name, args, kwargs)

    def __str__(self) -> str:
        words = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"{self.name}({', '.join(words)})" if words else self.name

    def __call__(self, env: Any) -> Any:
        return named("wrapper", self.name)(env, *self.args, **self.kwargs)


def is_code_name(name: str) -> bool:
    """Whether it has the form module:Name."""
    module, colon, rest = name.partition(":")
    return bool(colon and rest) and all(part.isidentifier() for part in module.split("."))


def code_names(settings: Mapping[str, Any]) -> list[str]:
    """What settings name of the user's own code, module:Name."""
    wrappers = settings.get("wrapper")
    values = [settings.get(name) for name in PIECES]
    for wrapper in wrappers if isinstance(wrappers, list | tuple) else [wrappers]:
        values.append(wrapper.partition("(")[0] if isinstance(wrapper, str) else wrapper)
    return [value for value in values if isinstance(value, str) and is_code_name(value)]


def name_of(thing: Any) -> str:
    """The name of a class or function that the user holds; from now on it is known in this process."""
    name = f"{thing.__module__}:{thing.__qualname__}"
    _objects[name] = thing
    return name


def wrapper_texts(wrappers: Any) -> tuple[Any, ...]:
    """One wrapper or several as they are written down."""
    return tuple(map(_wrapper_text, wrappers if isinstance(wrappers, list | tuple) else (wrappers,)))


def _wrapper_text(wrapper: Any) -> Any:
    """The name, with its arguments. What is no wrapper comes back as it is."""
    if isinstance(wrapper, functools.partial):
        bound = WithArguments(name_of(wrapper.func), wrapper.args, wrapper.keywords)
        return str(WithArguments.read(str(bound)))  # which refuses what is no literal
    if isinstance(wrapper, str):
        return str(WithArguments.read(wrapper))
    return name_of(wrapper) if callable(wrapper) else wrapper


def import_named(name: str) -> Any:
    """Import what the user has named, from the current folder too, as `python -m` would."""
    module, _, attributes = name.partition(":")
    if name in _objects:
        return _objects[name]
    try:
        thing = import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{name}: no module {module!r} can be imported ({error}): check the name, or PYTHONPATH"
        ) from error
    for attribute in attributes.split("."):
        if not hasattr(thing, attribute):
            raise ConfigError(f"{name}: module {module!r} has no {attributes!r}: check the name")
        thing = getattr(thing, attribute)
        if isinstance(thing, ModuleType):  # or whoever is allowed one module could name what that one imports
            raise ConfigError(f"{name}: {attribute!r} is a module: write {thing.__name__}: before what is in it")
    _objects[name] = thing
    return thing


def import_module(name: str) -> Any:
    """A module that the user has named, from the current folder too."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # at the end: a file here must not take the place of an installed module
    return importlib.import_module(name)


def import_installed(name: str, distribution: str) -> Any:
    """A module of an installed package, and not one of that name in the current folder; ImportError without it."""
    importlib.metadata.version(distribution)
    return importlib.import_module(name)


def import_pieces(settings: Mapping[str, Any]) -> None:
    """Import what the user has typed in settings: an algorithm, a network, a wrapper, …"""
    for name in code_names(settings):
        import_named(name)


def named(setting: str, name: str) -> Any:
    """What the user has named or imported; never imports."""
    if name not in _objects:
        module, _, attributes = name.partition(":")
        raise ConfigError(
            f"{setting} {name!r} is code of module {module!r}, which has not been imported: in Python pass the object "
            f"itself, {setting}={attributes}; for a folder that you trust add --allow-import {module}, in Python "
            f"cdqn.load(path, allow_import={module!r})"
        )
    return _objects[name]


def named_wrappers(texts: Iterable[str]) -> list[Any]:
    """The wrappers of a configuration, each a function of the environment."""
    calls = [WithArguments.read(text) for text in texts]
    return [call if call.args or call.kwargs else named("wrapper", call.name) for call in calls]


def import_allowed(folder: Path, settings: Mapping[str, Any], allow_import: str | Iterable[str]) -> None:
    """Import what a folder's settings name, as far as the user has allowed it; refuse the folder if they name more."""
    allowed = [allow_import] if isinstance(allow_import, str) else list(allow_import)
    for name in code_names(settings):
        if name not in _objects:
            if not _is_harmless(name):
                require_allowed(folder, name.partition(":")[0], f"was trained with {name!r}, and that", allowed)
            import_named(name)


def _is_harmless(name: str) -> bool:
    """Wrappers that belong to the library on which all of this rests."""
    module, _, attributes = name.partition(":")
    ours = module == "cdqn.envs.actions" and attributes == "NumberedActions"
    return ours or (f"{module}.".startswith("gymnasium.wrappers.") and attributes in HARMLESS_WRAPPERS)


def require_allowed(folder: Path, module: str, deed: str, allow_import: str | Iterable[str], or_else: str = "") -> None:
    """A folder may come from anywhere: a module that it names is imported only if the user has named it too."""
    if module not in ([allow_import] if isinstance(allow_import, str) else allow_import):
        raise CheckpointError(
            f"{folder} {deed} runs the code of module {module!r}: if you trust it, add --allow-import {module}, "
            f"in Python cdqn.load(path, allow_import={module!r}){or_else}"
        )
