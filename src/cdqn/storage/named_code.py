"""Code that a setting names, module:Name: an algorithm, a network, a replay memory or an exploration of the user's.

Importing a module runs it. So a name becomes an object only by the user's own word: typed on the command line, given
as an object in Python, or allowed for a folder with `allow_import`. What a folder names is never imported by itself.
"""

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdqn.errors import CheckpointError, ConfigError

PIECES = ("algorithm", "network", "replay", "exploration")
"""Settings that can be code of the user's, module:Name; in Python the class or function itself."""

_objects: dict[str, Any] = {}
"""What the user has named so far, in this process."""


def is_code_name(name: str) -> bool:
    """Whether it has the form module:Name."""
    module, colon, rest = name.partition(":")
    return bool(colon and rest) and all(part.isidentifier() for part in module.split("."))


def code_names(settings: Mapping[str, Any]) -> list[str]:
    """What settings name of the user's own code, module:Name."""
    wrappers = settings.get("wrapper")
    values = [settings.get(name) for name in PIECES]
    values += wrappers if isinstance(wrappers, list | tuple) else [wrappers]
    return [value for value in values if isinstance(value, str) and is_code_name(value)]


def name_of(thing: Any) -> str:
    """The name of a class or function that the user holds; from now on it is known in this process."""
    name = f"{thing.__module__}:{thing.__qualname__}"
    _objects[name] = thing
    return name


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
    _objects[name] = thing
    return thing


def import_module(name: str) -> Any:
    """A module that the user has named, from the current folder too."""
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # at the end: a file here must not take the place of an installed module
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


def all_named(setting: str, names: Iterable[str]) -> list[Any]:
    """`named`, for a setting of several."""
    return [named(setting, name) for name in names]


def import_allowed(folder: Path, settings: Mapping[str, Any], allow_import: str | Iterable[str]) -> None:
    """Import what a folder's settings name, as far as the user has allowed it; refuse the folder if they name more."""
    allowed = [allow_import] if isinstance(allow_import, str) else list(allow_import)
    for name in code_names(settings):
        if name not in _objects:
            require_allowed(folder, name.partition(":")[0], f"was trained with {name!r}, and that", allowed)
            import_named(name)


def require_allowed(folder: Path, module: str, deed: str, allow_import: str | Iterable[str], or_else: str = "") -> None:
    """A folder may come from anywhere: a module that it names is imported only if the user has named it too."""
    if module not in ([allow_import] if isinstance(allow_import, str) else allow_import):
        raise CheckpointError(
            f"{folder} {deed} runs the code of module {module!r}: if you trust it, add --allow-import {module}, "
            f"in Python cdqn.load(path, allow_import={module!r}){or_else}"
        )
