"""RG on a table, by hand: no target network, and the gradient flows through both ends of the residual."""

import pytest
import torch
from tables import algorithm, batch, table

from cdqn.algorithms import RG
from cdqn.config import Config
from cdqn.errors import ConfigError

SAMPLES = batch([0, 2], [0, 0], [1.0, 2.0], [1, 0], [False, True])


def test_gradient_flows_into_the_state_that_follows():
    online, values = table([[1.0, 0.0], [2.0, 3.0], [0.0, 5.0]])
    found = algorithm(RG).assess(SAMPLES, online, {}, 0.5)
    assert found.td_error_abs.tolist() == [1.5, 2.0]  # 1 + ½·3 − 1, and 2 − 0 at the end
    assert found.loss.tolist() == [1.125, 2.0]
    found.loss.sum().backward()
    expected = torch.zeros(3, 2)
    expected[0, 0], expected[1, 1], expected[2, 0] = -1.5, 0.5 * 1.5, -2.0
    torch.testing.assert_close(values.grad, expected)


@pytest.mark.parametrize("setting", [{"double_q": True}, {"target_period_updates": 5}, {"target_copy": "exact"}])
def test_settings_of_a_target_network_are_refused(setting):
    with pytest.raises(ConfigError, match="rg has no target network: drop"):
        Config(algorithm="rg", **setting)
