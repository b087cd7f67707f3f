"""Q as a table over three states: small enough to work out a loss by hand."""

import torch

from cdqn.algorithms import TensorBatch
from cdqn.config import Config

STATES = torch.eye(3)


def batch(state, action, reward, following, terminated, weight=None):
    """Samples of states 0, 1, 2 by their numbers."""
    weight = [1.0] * len(state) if weight is None else weight
    return TensorBatch(
        STATES[state], torch.tensor(action), torch.tensor(reward), STATES[following],
        torch.tensor(terminated), torch.tensor(weight),
    )  # fmt: skip


def table(rows):
    """Q, one row for each state, as a network; and the table, whose gradient can be asked for."""
    values = torch.tensor(rows, requires_grad=True)
    return {"q": lambda observation: observation @ values}, values


def algorithm(kind, **settings):
    return kind(Config(algorithm=kind.name, **({"loss": "mse"} | settings)).resolved())
