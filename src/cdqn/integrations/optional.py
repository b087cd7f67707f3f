"""Packages that come with an extra: loaded when they are needed, or the line that installs them.

And packages of environments that everybody knows: their ids need no module before them, and run folders that name them
need no permission. Only installed ones are imported, never a file of that name in the current folder.
"""

import re
from typing import Any, NamedTuple

from cdqn.errors import MissingPackageError
from cdqn.storage.named_code import import_installed


class KnownPackage(NamedTuple):
    """A package that registers environments with Gymnasium."""

    ids: str
    """A regular expression that their ids match."""
    distribution: str
    install: str
    """What pip is asked for."""
    module: str
    """Importing it registers them, unless there is a function to call."""
    register: str | None = None


KNOWN_PACKAGES: dict[str, KnownPackage] = {
    "minatar": KnownPackage("MinAtar/.+", "MinAtar", "'cdqn[minatar]'", "minatar.gym", "register_envs"),
    "minigrid": KnownPackage("(MiniGrid|BabyAI)-.+", "minigrid", "minigrid", "minigrid"),
    "highway_env": KnownPackage(
        "(highway|merge|roundabout|intersection|exit|two-way|u-turn|lane-keeping|parking|racetrack)"
        "(-(fast|generic|multi-agent|ActionRepeat|parked|large|oval))?(-v[0-9]+)?",
        "highway-env",
        "highway-env",
        "highway_env",
    ),
}
"""By the module that users write before an id, if they write one."""


def known_package(env_id: str) -> KnownPackage | None:
    """Whose environment it is, to judge by an id with or without the module."""
    module, _, name = env_id.rpartition(":")
    packages = [KNOWN_PACKAGES.get(module)] if module else list(KNOWN_PACKAGES.values())
    return next((package for package in packages if package and re.fullmatch(package.ids, name)), None)


def register_known(env_id: str, package: KnownPackage) -> None:
    """Have the environments of a known package registered, or the line that installs it."""
    try:
        module = import_installed(package.module, package.distribution)
    except ImportError as error:
        raise MissingPackageError(f"{env_id} needs {package.distribution}: pip install {package.install}") from error
    from gymnasium import registry

    if package.register is not None and env_id not in registry:
        getattr(module, package.register)()


def ale_roms() -> list[str]:
    """The Atari games there are."""
    try:
        from ale_py.roms import get_all_rom_ids
    except ImportError as error:
        raise missing("Atari games need ale-py", "atari") from error
    roms: list[str] = get_all_rom_ids()
    return roms


def ale_vector_env() -> Any:
    """The class of ALE's vector environment."""
    try:
        from ale_py.vector_env import AtariVectorEnv
    except ImportError as error:
        raise missing("Atari games need ale-py", "atari") from error
    return AtariVectorEnv


def zstandard_module() -> Any:
    """The compressor of frames."""
    try:
        import zstandard
    except ImportError as error:
        raise missing("a memory of frames needs zstandard", "atari") from error
    return zstandard


def missing(what: str, extra: str) -> MissingPackageError:
    return MissingPackageError(f"{what}: pip install 'cdqn[{extra}]'")
