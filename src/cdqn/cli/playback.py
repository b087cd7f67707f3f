"""Watching a policy: episodes, rendered."""

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cdqn.agent import Agent
from cdqn.envs import make_vec
from cdqn.envs.evaluation import evaluating, statistics_of
from cdqn.errors import CdqnError, ConfigError, UnsupportedEnvironmentError
from cdqn.integrations.video import write_video
from cdqn.storage.files import writing
from cdqn.training.build import how_to_make
from cdqn.training.exploration import EpsilonGreedy
from cdqn.training.seeding import require_seed


def play(
    agent: Agent, episodes: int, epsilon: float, seed: int, video: Path | None, max_steps: int | None = None
) -> list[float]:
    """Returns of the episodes, cut off after `max_steps`, after showing them in a window or writing them to `video`."""
    if agent.env_id is None:
        raise ConfigError(
            "the agent's environment is an object, which cannot be made to be seen: play another by its id"
        )
    _check(episodes, epsilon, seed, video, max_steps)
    rng = np.random.default_rng(seed)
    policy = EpsilonGreedy(agent.spec.num_actions)
    frames: list[Any] = []
    returns: list[float] = []
    mode = "rgb_array" if video else "human"
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")  # pygame asks for sound, and complains where there is none
    env = make_vec(agent.env_id, 1, mode, **how_to_make(agent.env_id, agent.config))
    try:
        with evaluating(env, statistics_of(agent.trainer.collector.env)):
            for episode in range(episodes):
                observation, _ = env.reset(seed=seed + episode)
                total, done, steps = 0.0, False, 0
                while not done and steps != max_steps:
                    steps += 1
                    if video:
                        frames.append(np.asarray(_render(env)[0], dtype=np.uint8))
                    actions = policy.act(agent.trainer.actor.greedy, observation, epsilon, rng)
                    observation, reward, terminated, truncated, _ = env.step(actions + agent.spec.first_action)
                    total += float(reward[0])
                    done = bool(terminated[0] or truncated[0])
                returns.append(total)
    except CdqnError:
        raise
    except Exception as error:  # whatever a window system or renderer raises
        if video:
            raise UnsupportedEnvironmentError(f"{agent.env_id} cannot be rendered to frames: {error}") from error
        raise UnsupportedEnvironmentError(
            f"{agent.env_id} cannot open a window ({error}): use --video FILE.gif"
        ) from error
    finally:
        env.close()
    if video:
        with writing(video):
            video.parent.mkdir(parents=True, exist_ok=True)
            write_video(video, frames, float(env.metadata.get("render_fps") or 30))
    return returns


def _check(episodes: int, epsilon: float, seed: int, video: Path | None, max_steps: int | None) -> None:
    if episodes < 1 or not 0 <= epsilon <= 1:
        raise ConfigError(f"play got episodes {episodes} and ε {epsilon}: at least 1, and within [0, 1]")
    require_seed(seed)
    if max_steps is not None and max_steps < 1:
        raise ConfigError(f"max_steps is {max_steps}: an episode has at least 1")
    if video and video.suffix not in (".mp4", ".gif"):
        raise ConfigError(f"a video cannot be written as {video.name!r}: name it .mp4 or .gif")


def _render(env: Any) -> Any:
    frames = env.render()
    if frames is None or frames[0] is None:
        raise gym.error.Error("it has no render mode rgb_array")
    return frames
