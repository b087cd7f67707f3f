"""A network of one's own, with layer normalisation: python examples/own_network.py

From the shell: cdqn train CartPole-v1 --network examples.own_network:make_network
"""

import torch
from torch import nn

import cdqn
from cdqn.envs import EnvSpec


class NormalizedMLP(nn.Module):
    """Observations to one value for each action."""

    def __init__(self, inputs: int, outputs: int, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(),
            nn.Linear(width, outputs),
        )  # fmt: skip

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return self.layers(observation.float())


def make_network(spec: EnvSpec) -> nn.Module:
    """Called once, under the run's seed; `num_actions` is the number of outputs that are wanted."""
    return NormalizedMLP(spec.observation_shape[0], spec.num_actions)


def main(steps: int = 20_000) -> cdqn.EvaluationResult:
    agent = cdqn.CDQN("CartPole-v1", network=make_network, seed=0)
    return agent.learn(steps).evaluate(episodes=10)


if __name__ == "__main__":
    print(main())
