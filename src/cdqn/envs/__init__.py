"""Environments: `make_vec` is the only factory, and what it returns has been checked."""

from cdqn.envs.factory import (
    EnvLike,
    EnvSpec,
    Kind,
    atari_game,
    default_preprocessing,
    describe,
    kind_of,
    make_vec,
    require_kind,
)

__all__ = [
    "EnvLike",
    "EnvSpec",
    "Kind",
    "atari_game",
    "default_preprocessing",
    "describe",
    "kind_of",
    "make_vec",
    "require_kind",
]
