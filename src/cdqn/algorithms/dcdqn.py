"""DC-DQN: C-DQN whose rewards make up for the noise in the next state, with a second network (docs/denoised.md)."""

from typing import TYPE_CHECKING

import torch

from cdqn import losses
from cdqn.algorithms.base import Assessment, BuildNetwork, Network, Networks, TensorBatch
from cdqn.algorithms.cdqn import CDQN

if TYPE_CHECKING:
    from cdqn.envs import EnvSpec


class DCDQN(CDQN):
    """C-DQN for tasks with noise: a second network V learns what the target of a slow copy of Q is on average."""

    name = "dcdqn"
    label = "DC-DQN"
    colour = "#CC79A7"  # Okabe and Ito's purple
    idle_settings = ("value_transform",)  # the mean of T(y) is not T of the mean
    slow_copy_updates = 1000
    """V has so long to follow. What Q has learned since then acts at once, with its noise (docs/denoised.md)."""
    v_step_size = 3.0
    """As a multiple of Q's: V has to be quick, or what is new to it is taken for noise. In a table it is 1."""
    v_average_updates = 100
    """The loss takes V from an average over so many updates, because V's own noise would be in every target. In a table
    there is no average: an entry is not disturbed by what others learn."""
    v_shares_torso = False
    """Whether V is a second head on Q's features, which it does not change, in place of a network of its own."""

    def networks(self, spec: "EnvSpec", build: BuildNetwork) -> dict[str, Network]:
        q = build(spec.num_actions)
        # V is without dueling streams: nobody takes its maximum, and it is half as large.
        v = build(spec.num_actions, dueling=False, head_on=q if self.v_shares_torso else None)
        is_table = not (self.config.hidden or self.config.network)
        step_size, average_updates = (1.0, None) if is_table else (self.v_step_size, self.v_average_updates)
        return {
            "q": Network(q, slow_copy_updates=self.slow_copy_updates),
            "v": Network(v, has_target=False, learning_rate_factor=step_size, slow_copy_updates=average_updates),
        }

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        facts = (batch.reward, batch.terminated, discount)
        slow_B = losses.dqn_target(*facts, target["q_slow"](batch.next_observation))
        seen = batch.observation
        if self.v_shares_torso:
            with torch.no_grad():
                seen = online["q_features"](seen)
        v_B = losses.action_value(online["v"](seen), batch.action)
        mean_B = losses.action_value(target["v_slow"](seen), batch.action) if "v_slow" in target else v_B
        reward_B = losses.denoised_reward(batch.reward, mean_B, slow_B)
        found = super().assess(batch._replace(reward=reward_B), online, target, discount)
        # The mean of y is what the squared error finds; the Huber loss would find something like its median.
        fit = losses.dqn_loss(v_B, slow_B, batch.weight, huber=False)
        statistics = {
            "noise": losses.logged_loss((slow_B - mean_B).abs(), batch.weight),
            "v_lag": (batch.weight * (slow_B - mean_B)).mean(),
        }
        return found._replace(loss=found.loss + fit.loss, statistics=found.statistics | statistics)
