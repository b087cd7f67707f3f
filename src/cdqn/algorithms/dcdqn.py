"""DC-DQN: C-DQN whose targets are freed of noise by a second network (docs/denoised.md)."""

from typing import TYPE_CHECKING

import torch

from cdqn import losses
from cdqn.algorithms.base import Assessment, BuildNetwork, Network, Networks, TensorBatch
from cdqn.algorithms.cdqn import CDQN

if TYPE_CHECKING:
    from cdqn.envs import EnvSpec


class DCDQN(CDQN):
    """C-DQN for tasks with noise: a second network learns what DQN's target is on average."""

    name = "dcdqn"
    label = "DC-DQN"
    colour = "#CC79A7"  # Okabe and Ito's purple
    idle_settings = ("value_transform",)  # the mean of T(y) is not T of the mean
    v_step_size = 10.0
    """As a multiple of Q's. Between two copies V has a fixed target, and should be there before Q is: with 3 a reward
    that was just found moved Q late, and LunarLander was learned more slowly."""
    v_shares_torso = False
    """Whether V is a second head on Q's features, which it does not change, in place of a network of its own."""

    def networks(self, spec: "EnvSpec", build: BuildNetwork) -> dict[str, Network]:
        # V is without dueling streams: nobody takes its maximum, and it is half as large.
        if self.v_shares_torso:
            q = build(spec.num_actions)
            head = build(spec.num_actions, dueling=False, head_on=q)
            return {"q": Network(q), "v": Network(head, False, self.v_step_size, features_of="q")}
        v = build(spec.num_actions, dueling=False)
        return {"q": Network(build(spec.num_actions)), "v": Network(v, False, self.v_step_size)}

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        config = self.config
        facts = (batch.reward, batch.terminated, discount)
        q_BA, next_q_BA = online["q"](torch.cat([batch.observation, batch.next_observation])).chunk(2)
        chooser_BA = next_q_BA.detach() if config.double_q else None
        dqn_B = losses.dqn_target(*facts, target["q"](batch.next_observation), chooser_BA)
        msbe_B = losses.msbe_target(*facts, next_q_BA)
        q_B, v_B = (losses.action_value(value_BA, batch.action) for value_BA in (q_BA, online["v"](batch.observation)))
        terms = losses.denoised_loss(q_B, v_B, dqn_B, msbe_B, batch.weight, config.loss == "huber")
        # The mean of y is what the squared error finds; the Huber loss would find something like its median.
        fit = losses.dqn_loss(v_B, dqn_B, batch.weight, huber=False)
        found = self.assessment(
            batch,
            q_BA,
            terms,
            (),
            dqn_share=terms.on_dqn_branch.to(q_B.dtype).mean(),
            noise=losses.logged_loss(fit.td_error_abs, batch.weight),
            v_lag=(batch.weight * (dqn_B - v_B.detach())).mean(),
        )
        return found._replace(loss=found.loss + fit.loss)
