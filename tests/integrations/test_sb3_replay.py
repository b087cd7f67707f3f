"""Which rows of the host's buffer are drawn, with which weights: against the buffer's own arrays."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from cdqn.integrations.sb3_replay import PrioritizedReplayBuffer

ENVS, ROWS = 3, 5


def buffer(rows=ROWS, **more):
    return PrioritizedReplayBuffer(
        rows * ENVS, spaces.Box(-1e6, 1e6, (1,)), spaces.Discrete(2), device="cpu", n_envs=ENVS, **more
    )


def fill(memory, steps, dones=()):
    """Each row holds its number: 10 times the step, plus the environment."""
    for step in range(steps):
        number = np.array([[10 * step + env] for env in range(ENVS)], np.float32)
        done = np.array([(step, env) in dones for env in range(ENVS)])
        infos = [{} for _ in range(ENVS)]
        memory.add(number, number + 0.5, np.zeros((ENVS, 1)), number[:, 0], done, infos)


def test_columns_of_a_row_belong_together():
    memory = buffer()
    fill(memory, 8)  # older rows are overwritten
    data = memory.sample(200)
    number = data.observations.flatten()
    assert torch.equal(data.rewards.flatten(), number)
    assert torch.equal(data.next_observations.flatten(), number + 0.5)
    assert set(number.int().tolist()) == {10 * step + env for step in range(3, 8) for env in range(ENVS)}


def test_rows_of_large_errors_are_drawn_more_often_and_weigh_less():
    memory = buffer(beta_start=1.0, priorities={"raise_predecessor": False, "alpha": 1.0})
    fill(memory, ROWS)
    every = np.arange(ROWS * ENVS)
    errors = torch.ones(len(every))
    errors[7] = 20.0  # the third row, environment 1
    for _ in range(6):  # each time with the floor that the mean of before sets
        memory.update_priorities(every, errors)
    data = memory.sample(3000)
    drawn = data.slots == 7
    mean = (14 * 1 + 20) / 15
    assert drawn.mean() == pytest.approx(20 / 34, abs=0.03)
    assert data.weights[torch.from_numpy(drawn)].unique().tolist() == pytest.approx([mean / 20])
    assert set(data.observations[torch.from_numpy(drawn)].flatten().tolist()) == {21.0}


def test_a_row_before_a_surprise_is_lifted_unless_an_episode_ended_between():
    for dones, lifted in (((), True), ({(1, 1)}, False)):
        memory = buffer(priorities={"alpha": 1.0})
        fill(memory, ROWS, dones)
        for _ in range(6):
            memory.update_priorities(np.arange(15), torch.full((15,), 0.1))
        memory.update_priorities(np.array([7]), torch.tensor([20.0]))
        before = memory._order.state_dict()["priorities"][4]
        assert before == pytest.approx(10.0 if lifted else 0.1, rel=0.01)


def test_weights_grow_whole_as_training_goes_on():
    memory = buffer(beta_start=0.4)
    memory.set_progress(0.5)
    assert memory.beta == pytest.approx(0.7)
    memory.set_progress(1.0)
    assert memory.beta == 1.0


def test_timeouts_are_not_terminations():
    memory = buffer()
    number = np.zeros((ENVS, 1), np.float32)
    infos = [{"TimeLimit.truncated": True}, {}, {}]
    memory.add(number, number, np.zeros((ENVS, 1)), number[:, 0], np.array([True, True, False]), infos)
    data = memory.sample(60)
    ends = {int(slot): float(done) for slot, done in zip(data.slots, data.dones, strict=True)}
    assert ends == {0: 0.0, 1: 1.0, 2: 0.0}
