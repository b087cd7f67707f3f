"""Floor and cap of App. E.2 in RLlib's prioritized buffer."""

import numpy as np
import pytest
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from cdqn.integrations.rllib_replay import FlooredEpisodeReplayBuffer


def buffer(steps=20, **settings):
    memory = FlooredEpisodeReplayBuffer(capacity=100, alpha=1.0, **settings)
    observations = [np.array([number], np.float32) for number in range(steps + 1)]
    memory.add(
        SingleAgentEpisode(observations=observations, actions=[0] * steps, rewards=[1.0] * steps, len_lookback_buffer=0)
    )
    return memory


def set_all(memory, errors):
    """|δ| of every row, by its number."""
    nodes = {row: node for _, row, node in memory._indices}
    memory._last_sampled_indices = [nodes[row] for row in range(len(errors))]
    memory.update_priorities(np.array(errors))
    return np.array([memory._sum_segment[nodes[row]] for row in range(len(errors))])


def test_no_priority_falls_below_a_part_of_the_mean():
    memory = buffer()  # first priorities are 1
    found = set_all(memory, [0.001] * 10 + [3.0] * 10)
    assert found == pytest.approx([0.1] * 10 + [3.0] * 10)
    mean = (0.1 + 3.0) / 2
    assert set_all(memory, [0.001] * 10 + [3.0] * 10)[0] == pytest.approx(mean / 10)


def test_weights_are_mean_over_priority_and_end_at_the_cap():
    memory = buffer(floor_divisor=10.0)
    priority = set_all(memory, [1.0] * 19 + [5.0])
    mean = priority.mean()
    episodes = memory.sample(num_items=200, n_step=1, beta=1.0, gamma=0.9)
    for episode in episodes:
        row = int(episode.get_observations(0)[0])
        weight = float(episode.get_extra_model_outputs("weights")[0])
        assert weight == pytest.approx(mean / priority[row])
    tight = buffer(floor_divisor=0.4)  # a cap of 0.8
    assert max(float(e.get_extra_model_outputs("weights")[0]) for e in tight.sample(50, n_step=1, beta=1.0)) == 0.8
