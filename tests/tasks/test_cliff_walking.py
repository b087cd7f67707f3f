"""The two cliff tasks: every transition against the rules in words, and the optimum against a shortest path."""

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.tabular import greedy_return, initial_q, msbe_sum, optimal_q
from cdqn.tasks.cliff_walking import (
    DOWN,
    LEFT,
    ONE_WAY_RIGHT,
    ONE_WAY_UP,
    RIGHT,
    UP,
    cliff_walking,
    one_way_cliff_walking,
)


@pytest.mark.parametrize(("width", "pairs", "msbe"), [(10, 106, 90_096), (20, 216, 190_196)])
def test_the_table_has_no_goal_no_cliff_and_no_walls(width, pairs, msbe):
    """At Q = 0 the MSBE is 100² for each way into the cliff, and 1 for each move that is not to the goal."""
    mdp = cliff_walking(width)
    assert mdp.valid.shape == (3 * width + 1, 4)
    assert mdp.valid.sum() == pairs
    assert msbe_sum(initial_q(mdp), mdp, 0.9) == msbe


def test_moves_rewards_and_ends_of_cliff_walking():
    mdp, start = cliff_walking(10), 30
    assert mdp.start == start
    assert mdp.valid[start].tolist() == [True, False, True, False]  # no way down or left out of the corner
    assert (mdp.next_state[start, UP], mdp.reward[start, UP], mdp.terminal[start, UP]) == (20, -1, False)
    assert (mdp.reward[start, RIGHT], mdp.terminal[start, RIGHT]) == (-100, True)
    for column in range(1, 9):
        assert (mdp.reward[20 + column, DOWN], mdp.terminal[20 + column, DOWN]) == (-100, True)
    assert (mdp.next_state[20, DOWN], mdp.reward[20, DOWN], mdp.terminal[20, DOWN]) == (start, -1, False)
    assert (mdp.reward[29, DOWN], mdp.terminal[29, DOWN]) == (0, True)  # the goal
    assert (mdp.next_state[11, LEFT], mdp.next_state[11, RIGHT], mdp.next_state[11, UP]) == (10, 12, 1)
    assert not mdp.valid[0, UP]
    assert not mdp.valid[0, LEFT]
    assert not mdp.valid[9, RIGHT]


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_optimal_value_is_that_of_the_shortest_way_round_the_cliff(discount):
    q_SA = optimal_q(cliff_walking(10), discount)
    # From the start: up, nine to the right, and down to the goal for nothing.
    assert q_SA[30].max() == pytest.approx(-sum(discount**k for k in range(10)))
    assert q_SA[30].argmax() == UP


def test_moves_rewards_and_ends_of_one_way_cliff_walking():
    mdp = one_way_cliff_walking(8)
    assert mdp.valid.shape == (7, 2)
    assert mdp.terminal[:, ONE_WAY_UP].all()
    assert mdp.terminal[:, ONE_WAY_RIGHT].tolist() == [False] * 6 + [True]
    assert mdp.next_state[:6, ONE_WAY_RIGHT].tolist() == [1, 2, 3, 4, 5, 6]
    assert greedy_return(optimal_q(mdp, 1.0), mdp, np.full(7, 0.5)) == 14
    assert optimal_q(mdp, 1.0)[:, ONE_WAY_RIGHT].tolist() == [14, 12, 10, 8, 6, 4, 2]


def test_a_width_without_a_goal_is_refused():
    with pytest.raises(ConfigError, match="width 1"):
        cliff_walking(1)
