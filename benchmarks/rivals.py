"""Algorithms of others, as rivals of ours: `cdqn compare ENV --algorithms dcdqn,rivals:QRC` in this folder."""

import torch

from cdqn import losses
from cdqn.algorithms import Algorithm, Assessment, Network


class QRC(Algorithm):
    """Q-learning with regularized corrections, after Ghiassian et al. (2020) and Patterson et al. (2022).

    A second network h learns E[δ | s, a], and takes the place of δ where it meets the gradient of the next state; so
    its mean is free of the bias of noise. No target network. Their penalty on the weights of h is one on h itself
    here, of the same strength, 1: the loss sees no weights. h then is half of E[δ | s, a].
    """

    name = "qrc"
    label = "QRC"
    colour = "#56B4E9"
    has_target = False
    idle_settings = ("value_transform", "loss")
    penalty = 1.0

    def networks(self, spec, build):
        return {name: Network(build(spec.num_actions), has_target=False) for name in ("q", "h")}

    def assess(self, batch, online, target, discount):
        q_BA, next_q_BA = online["q"](torch.cat([batch.observation, batch.next_observation])).chunk(2)
        q_B = losses.action_value(q_BA, batch.action)
        h_B = losses.action_value(online["h"](batch.observation), batch.action)
        target_B = losses.msbe_target(batch.reward, batch.terminated, discount, next_q_BA)
        delta_B = (target_B - q_B).detach()
        step_B = h_B.detach() * target_B - delta_B * q_B  # its gradient is −δ ∇q + h γ ∇max q′
        fit_B = (delta_B - h_B).square() / 2 + self.penalty * h_B.square() / 2
        statistics = {
            "loss": losses.logged_loss(delta_B.abs(), batch.weight),
            "q_mean": q_BA.detach().amax(1).mean(),
        }
        return Assessment(batch.weight * (step_B + fit_B), delta_B.abs(), statistics)
