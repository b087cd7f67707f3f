"""The published settings, in the units of the paper: episodes of 1800 steps."""

import pytest

from cdqn.tasks.oscillator.published import SETTINGS

EPISODE_STEPS = 1800


def test_step_size_falls_at_the_published_episodes_to_the_published_values():
    drops = SETTINGS["learning_rate_drops"]
    episodes = [share * SETTINGS["steps"] / EPISODE_STEPS for share, _ in drops]
    assert episodes == pytest.approx([1000, 2000, 5000, 7000, 8500, 10_000])
    rates = [SETTINGS["learning_rate"] * factor for _, factor in drops]
    assert rates == pytest.approx([4e-4, 8e-5, 2e-5, 4e-6, 8e-7, 2e-7])


def test_every_transition_is_used_eight_times_in_a_memory_of_5000_episodes():
    assert SETTINGS["batch_size"] / SETTINGS["update_period_steps"] == 8
    assert SETTINGS["memory_size"] == 5000 * EPISODE_STEPS
    assert SETTINGS["eviction"] == "random"
