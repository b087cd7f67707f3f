"""How cold a policy keeps the oscillator: the number by which App. B.1 compares."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cdqn.envs.oscillator.vector import Observation, QuarticOscillatorVectorEnv

TEST_ENERGY_LIMIT = 100.0
"""Of the paper's tests; in training it is lower."""


def late_energies(
    env: QuarticOscillatorVectorEnv, act: Callable[[Observation], NDArray[np.int64]], episodes: int, seed: int
) -> NDArray[np.float64]:
    """Mean energy over the second half of each episode, App. B.1; of an episode that ended early, the energy limit."""
    means = []
    for first in range(0, episodes, env.num_envs):
        # Episode i has the same seed however many trajectories there are.
        seeds = [_episode_seed(seed, first + env_number) for env_number in range(env.num_envs)]
        observation, infos = env.reset(seed=seeds)
        energies = [infos["energy"]]
        failed_B = np.zeros(env.num_envs, bool)
        for _ in range(1, env.time_limit_steps):
            observation, _, _, truncated_B, infos = env.step(act(observation))
            energies.append(infos["energy"])
            if truncated_B.any():
                failed_B |= truncated_B
                if failed_B.all():
                    break
                observation, _ = env.reset(seed=seeds, options={"reset_mask": truncated_B})
        mean_B = np.full(env.num_envs, env.energy_limit)
        if not failed_B.all():
            mean_B[~failed_B] = np.mean(energies[env.time_limit_steps // 2 :], axis=0)[~failed_B]
        means.append(mean_B)
    return np.concatenate(means)[:episodes]


def _episode_seed(seed: int, episode: int) -> int:
    return int(np.random.SeedSequence(seed, spawn_key=(episode,)).generate_state(1)[0])
