"""An algorithm of one's own with an auxiliary network: python examples/own_algorithm.py

In a stochastic environment the residual gradient is biased: it also minimises the variance of the target. A second
network h(s, a) that learns the expected TD error removes the bias: Q descends along h·δ, not δ·δ (Dai et al. 2018).

From the shell: cdqn compare CartPole-v1 --algorithms rg,examples.own_algorithm:Conjugate
"""

import cdqn
from cdqn import losses
from cdqn.algorithms import Algorithm, Assessment, Network


class Conjugate(Algorithm):
    """The residual gradient with a learned expectation of the TD error."""

    name = "conjugate"
    label = "RG with h(s, a)"
    colour = "#CC79A7"
    has_target = False
    convergent = True
    idle_settings = ("value_transform", "loss")

    def networks(self, spec, build):
        h = Network(build(spec.num_actions, dueling=False), has_target=False, learning_rate_factor=5.0)
        return {"q": Network(build(spec.num_actions), has_target=False), "h": h}

    def assess(self, batch, online, target, discount):
        q_BA, next_q_BA = online["q"](batch.observation), online["q"](batch.next_observation)
        target_B = losses.msbe_target(batch.reward, batch.terminated, discount, next_q_BA)
        delta_B = target_B - losses.action_value(q_BA, batch.action)
        h_B = losses.action_value(online["h"](batch.observation), batch.action)
        loss_B = h_B.detach() * delta_B + losses.half_squared(delta_B.detach() - h_B)
        error_B = delta_B.detach().abs()
        statistics = {
            "loss": losses.logged_loss(error_B, batch.weight),
            "q_mean": q_BA.detach().amax(1).mean(),
            "expected_error": h_B.detach().abs().mean(),
        }
        return Assessment(batch.weight * loss_B, error_B, statistics)


def main(steps: int = 20_000) -> cdqn.EvaluationResult:
    return cdqn.Agent("CartPole-v1", algorithm=Conjugate, seed=0).learn(steps).evaluate(episodes=10)


if __name__ == "__main__":
    print(main())
