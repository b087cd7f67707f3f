"""DQN on a table, by hand: the target is the frozen network's and has no gradient."""

import pytest
import torch
from tables import algorithm, batch, table

from cdqn.algorithms import DQN

SAMPLES = batch([0, 2], [0, 0], [1.0, 2.0], [1, 0], [False, True], [2.0, 1.0])
ONLINE = [[1.0, 0.0], [2.0, 3.0], [0.0, 5.0]]
FROZEN = [[9.0, 9.0], [8.0, 6.0], [0.0, 4.0]]


@pytest.mark.parametrize(("double_q", "error"), [(True, 3.0), (False, 4.0)])  # 1 + ½·6, or 1 + ½·8, less 1
def test_loss_is_the_weighted_square_of_the_distance_to_the_frozen_target(double_q, error):
    online, values = table(ONLINE)
    target, frozen = table(FROZEN)
    found = algorithm(DQN, double_q=double_q).assess(SAMPLES, online, target, 0.5)
    assert found.td_error_abs.tolist() == [error, 2.0]
    assert found.loss.tolist() == [2 * error**2 / 2, 2.0]
    found.loss.sum().backward()
    expected = torch.zeros(3, 2)
    expected[0, 0], expected[2, 0] = -2 * error, -2.0
    torch.testing.assert_close(values.grad, expected)
    assert frozen.grad is None


def test_q_is_reported_of_the_online_network():
    online, _ = table(ONLINE)
    target, _ = table(FROZEN)
    statistics = algorithm(DQN).assess(SAMPLES, online, target, 0.5).statistics
    assert statistics["q_mean"].item() == (1 + 5) / 2
    assert set(statistics) == {"loss", "q_mean"}
