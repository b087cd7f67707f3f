"""C-DQN on a table, by hand: per sample the larger loss, with its own gradient."""

import pytest
import torch
from tables import algorithm, batch, table

from cdqn.algorithms import CDQN
from cdqn.config import Config
from cdqn.errors import ConfigError

SAMPLES = batch([0, 1, 2], [0, 1, 0], [1.0, 0.0, 2.0], [1, 2, 0], [False, False, True])
ONLINE = [[1.0, 0.0], [3.0, 2.0], [0.0, 5.0]]
FROZEN = [[9.0, 9.0], [8.0, 0.0], [0.0, 4.0]]
# γ ½, θ chooses and θ̃ values: targets of DQN 1 + ½·8 = 5, ½·4 = 2, 2; of the residual 1 + ½·3 = 2.5, ½·5 = 2.5, 2.
# δ of DQN 4, 0, 2; of the residual 1.5, 0.5, 2. The first is DQN's, the second the residual's, the third a tie.


def assess(online, target, **settings):
    return algorithm(CDQN, **settings).assess(SAMPLES, online, target, 0.5)


def test_loss_of_each_sample_is_the_larger_one():
    online, _ = table(ONLINE)
    target, _ = table(FROZEN)
    found = assess(online, target)
    assert found.loss.tolist() == [8.0, 0.125, 2.0]
    assert found.td_error_abs.tolist() == [4.0, 0.5, 2.0]
    assert found.statistics["dqn_share"].item() == pytest.approx(2 / 3)
    assert found.statistics["q_mean"].item() == pytest.approx((1 + 3 + 5) / 3)
    assert found.statistics["loss"].item() == pytest.approx((16 + 0.25 + 4) / 3)


def test_gradient_is_that_of_the_branch_taken():
    online, values = table(ONLINE)
    target, frozen = table(FROZEN)
    assess(online, target).loss.sum().backward()
    expected = torch.zeros(3, 2)
    expected[0, 0] = -4.0  # DQN's: nothing flows into state 1, where the target was read
    expected[1, 1] = -0.5  # the residual's: it flows into state 2 as well
    expected[2, 1] = 0.5 * 0.5
    expected[2, 0] = -2.0
    torch.testing.assert_close(values.grad, expected)
    assert frozen.grad is None


def test_without_double_q_the_frozen_network_chooses_too():
    online, _ = table([[1.0, 0.0], [2.0, 3.0], [0.0, 5.0]])
    target, _ = table(FROZEN)
    double, single = (assess(online, target, double_q=setting).td_error_abs[0].item() for setting in (True, False))
    assert double == 1.5  # θ chooses action 1 in state 1, worth 0 to θ̃: δ is 0, and the residual's is larger
    assert single == 4.0


def test_exact_copy_after_every_update_is_refused():
    with pytest.raises(ConfigError, match="C-DQN becomes DQN"):
        Config(algorithm="cdqn", target_copy="exact", target_period_updates=1)
