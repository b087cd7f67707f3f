"""Evaluation: whole episodes of a policy, in environments of their own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from cdqn.envs import EnvSpec
from cdqn.errors import StoppedError, UnsupportedEnvironmentError
from cdqn.training.actor import Actor
from cdqn.training.collector import Collector
from cdqn.training.events import EvaluationResult
from cdqn.training.exploration import EpsilonGreedy
from cdqn.training.seeding import EXPLORATION, generator

MAX_EPISODE_STEPS = 1_000_000
"""A policy that never ends an episode must not hang an evaluation of an environment without time limit."""


def evaluate(
    actor: Actor,
    env: VectorEnv[Any, Any, Any],
    spec: EnvSpec,
    episodes: int,
    *,
    seed: int,
    epsilon: float = 0.0,
    on_episode: Callable[[], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    timeout_seconds: float | None = None,
) -> EvaluationResult:
    """Play `episodes` episodes, each environment its fixed share of them.

    The shares are fixed beforehand: taking the first to finish would favour short episodes. `StoppedError` as soon as
    `should_stop` is true between two steps.
    """
    rng = generator(seed, EXPLORATION)
    policy = EpsilonGreedy(spec.num_actions)
    collector = Collector(env, spec, seed, timeout_seconds=timeout_seconds)
    quota = np.full(env.num_envs, episodes // env.num_envs)
    quota[: episodes % env.num_envs] += 1
    results: list[tuple[float, int]] = []
    while quota.any():
        if should_stop():
            raise StoppedError(f"stopped after {len(results)} of {episodes} episodes of an evaluation")
        actions = policy.act(actor.greedy, collector.observation, epsilon, rng)
        finished = collector.step(actions).episodes
        for episode in finished:
            if quota[episode.env]:
                quota[episode.env] -= 1
                results.append((episode.total_reward, episode.length))
                if on_episode:
                    on_episode()
        if collector.longest_open_episode > MAX_EPISODE_STEPS:
            raise UnsupportedEnvironmentError(
                f"an episode has lasted {MAX_EPISODE_STEPS} steps: give the environment a time limit, "
                "--wrapper 'gymnasium.wrappers:TimeLimit(max_episode_steps=1000)'"
            )
    returns, lengths = zip(*results, strict=True)
    return EvaluationResult(np.array(returns, dtype=np.float64), np.array(lengths), epsilon)
