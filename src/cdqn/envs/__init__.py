"""Environments: `make_vec` is the only factory, and what it returns has been checked."""

import gymnasium

from cdqn.envs.data import DATA_ENV
from cdqn.envs.factory import (
    EnvSpec,
    Kind,
    default_preprocessing,
    describe,
    kind_of,
    let_go,
    make_vec,
    observation_adapter,
    require_kind,
)
from cdqn.envs.names import EnvLike, atari_game, module_of

__all__ = [
    "DATA_ENV",
    "EnvLike",
    "EnvSpec",
    "Kind",
    "atari_game",
    "default_preprocessing",
    "describe",
    "kind_of",
    "let_go",
    "make_vec",
    "module_of",
    "observation_adapter",
    "require_kind",
]

# By name: the module is imported when the environment is made.
gymnasium.register("cdqn/WetChicken-v0", "cdqn.envs.wet_chicken:WetChickenEnv", max_episode_steps=300)
gymnasium.register(DATA_ENV, "cdqn.envs.data:DataEnv")
gymnasium.register(
    "cdqn/QuarticOscillator-v0",
    "cdqn.envs.oscillator:QuarticOscillatorEnv",
    vector_entry_point="cdqn.envs.oscillator:QuarticOscillatorVectorEnv",
)
# Gymnasium's own has no time limit: a policy that walks in circles would never end an evaluation.
gymnasium.register(
    "cdqn/CliffWalking-v0", "gymnasium.envs.toy_text.cliffwalking:CliffWalkingEnv", max_episode_steps=200
)
gymnasium.register(
    "cdqn/FrozenLake8x8-v0",
    "gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
    kwargs={"map_name": "8x8", "is_slippery": False},
    max_episode_steps=200,
)
