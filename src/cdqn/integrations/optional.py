"""Packages that come with an extra: loaded when they are needed, or the line that installs them."""

from typing import Any

from cdqn.errors import MissingPackageError


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


def minatar_gym(env_id: str) -> Any:
    """The module that registers MinAtar's games."""
    try:
        import minatar.gym
    except ImportError as error:
        raise missing(f"{env_id} needs minatar", "minatar") from error
    return minatar.gym


def zstandard_module() -> Any:
    """The compressor of frames."""
    try:
        import zstandard
    except ImportError as error:
        raise missing("a memory of frames needs zstandard", "atari") from error
    return zstandard


def missing(what: str, extra: str) -> MissingPackageError:
    return MissingPackageError(f"{what}: pip install 'cdqn[{extra}]'")
