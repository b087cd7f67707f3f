"""DC-DQN: C-DQN whose rewards make up for the noise in the next state, with a second network (docs/denoised.md)."""

from typing import TYPE_CHECKING

import torch

from cdqn import losses
from cdqn.algorithms.base import Assessment, BuildNetwork, Network, Networks, TensorBatch
from cdqn.algorithms.cdqn import CDQN

if TYPE_CHECKING:
    from cdqn.envs import EnvSpec


class DCDQN(CDQN):
    """C-DQN for tasks with noise: a second network h learns what the TD error of a slow copy of Q is on average."""

    name = "dcdqn"
    label = "DC-DQN"
    colour = "#CC79A7"  # Okabe and Ito's purple
    idle_settings = ("value_transform",)  # the mean of T(y) is not T of the mean
    slow_copy_updates = 1000
    """h has so long to follow. What Q has learned since then acts at once, with its noise (docs/denoised.md)."""
    h_step_size = 1.0
    """As a multiple of Q's."""
    h_width = 0.5
    """As a multiple of Q's: what is left for h to learn is small, and with half of the width it costs a third."""

    def networks(self, spec: "EnvSpec", build: BuildNetwork) -> dict[str, Network]:
        q = build(spec.num_actions)
        # h is without dueling streams: nobody takes its maximum. At 0 it leaves Q where its slow copy is.
        h = build(spec.num_actions, dueling=False, width=self.h_width, zero=True)
        return {
            "q": Network(q, slow_copy_updates=self.slow_copy_updates),
            "h": Network(h, has_target=False, learning_rate_factor=self.h_step_size),
        }

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        slow_q_BA, slow_next_q_BA = target["q_slow"](torch.cat([batch.observation, batch.next_observation])).chunk(2)
        slow_target_B = losses.dqn_target(batch.reward, batch.terminated, discount, slow_next_q_BA)
        slow_error_B = slow_target_B - losses.action_value(slow_q_BA, batch.action)
        h_B = losses.action_value(online["h"](batch.observation), batch.action)
        reward_B = losses.denoised_reward(batch.reward, slow_error_B, h_B)
        found = super().assess(batch._replace(reward=reward_B), online, target, discount)
        # The mean is what the squared error finds; the Huber loss would find something like the median.
        fit = losses.dqn_loss(h_B, slow_error_B, batch.weight, huber=False)
        statistics = {
            "noise": losses.logged_loss(fit.td_error_abs, batch.weight),
            "h_lag": (batch.weight * (slow_error_B - h_B.detach())).mean(),
        }
        return found._replace(loss=found.loss + fit.loss, statistics=found.statistics | statistics)
