"""A second head on the features of a network: cheaper than a network of its own."""

from torch import Tensor, nn

from cdqn.errors import ConfigError
from cdqn.nn.networks import MLP, BoardCNN, DuelingCNN, Head, he_initialize, pytorch_initialize

HasFeatures = MLP | BoardCNN | DuelingCNN
"""The networks that are made of features and a head."""


class Features(nn.Module):
    """What a network gives to its head, as a module of its own with the same parameters."""

    def __init__(self, network: HasFeatures) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: Tensor) -> Tensor:
        return self.network.features(observation)


def second_head(network: nn.Module, outputs: int, dueling: bool = True, initial_weights: str = "he") -> Head:
    """Another head for the features of a network, as wide as its own."""
    if not isinstance(network, HasFeatures):
        raise ConfigError(
            f"a {type(network).__name__} has no features for a second head: it needs hidden layers, of cdqn's own kind"
        )
    head = Head(network.head.hidden.in_features, outputs, network.head.width, dueling)
    (pytorch_initialize if initial_weights == "pytorch" else he_initialize)(head)
    return head
