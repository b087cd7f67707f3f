"""The two cliff tasks of Section 3 as exact finite tasks.

The table has no states for goal and cliff, where nothing is done any more, and no moves into walls (App. F).
"""

import numpy as np

from cdqn.errors import ConfigError
from cdqn.tabular import FiniteMDP

HEIGHT = 4
UP, DOWN, RIGHT, LEFT = range(4)
"""Actions of cliff walking. The order decides which of equal actions is the first; it is the authors'."""

ONE_WAY_UP, ONE_WAY_RIGHT = range(2)
"""Actions of one-way cliff walking."""


def cliff_walking(width: int = 10) -> FiniteMDP:
    """Fig. 1: from the lower left to the lower right corner, and the cells between the two are a cliff.

    State row·width + column, rows from the top; of the lowest row only the start is a state. A move costs 1, one
    into the cliff 100 and the episode ends, one to the goal 0 and the episode ends.
    """
    _check_width(width)
    states, lowest = (HEIGHT - 1) * width + 1, HEIGHT - 1
    next_state_SA = np.zeros((states, 4), np.int64)
    reward_SA = np.zeros((states, 4))
    terminal_SA, valid_SA = np.zeros((2, states, 4), np.bool_)
    for state in range(states):
        row, column = divmod(state, width)
        moves = {UP: (row - 1, column), DOWN: (row + 1, column), RIGHT: (row, column + 1), LEFT: (row, column - 1)}
        for action, (next_row, next_column) in moves.items():
            if not (0 <= next_row < HEIGHT and 0 <= next_column < width):
                continue
            valid_SA[state, action] = True
            terminal_SA[state, action] = next_row == lowest and next_column > 0
            if not terminal_SA[state, action]:
                reward_SA[state, action] = -1.0
                next_state_SA[state, action] = next_row * width + next_column
            elif next_column < width - 1:
                reward_SA[state, action] = -100.0
    return FiniteMDP(next_state_SA, reward_SA, terminal_SA, valid_SA, start=states - 1)


def one_way_cliff_walking(width: int = 8) -> FiniteMDP:
    """Fig. 3: to the right for +2, up the cliff for −1 and the episode ends; it ends at the goal, the last column."""
    _check_width(width)
    states = width - 1
    next_state_SA = np.zeros((states, 2), np.int64)
    reward_SA = np.zeros((states, 2))
    terminal_SA = np.zeros((states, 2), np.bool_)
    reward_SA[:, ONE_WAY_UP], reward_SA[:, ONE_WAY_RIGHT] = -1.0, 2.0
    terminal_SA[:, ONE_WAY_UP], terminal_SA[-1, ONE_WAY_RIGHT] = True, True
    next_state_SA[:-1, ONE_WAY_RIGHT] = np.arange(1, states)
    return FiniteMDP(next_state_SA, reward_SA, terminal_SA, np.ones((states, 2), np.bool_), start=0)


def _check_width(width: int) -> None:
    if width < 2:
        raise ConfigError(f"a cliff task of width {width} has no goal beside the start: the width must be at least 2")
