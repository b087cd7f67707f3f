"""C-DQN: per sample the larger of DQN's loss and the Bellman residual (Eq. 12)."""

from typing import TYPE_CHECKING

from cdqn.algorithms.base import Algorithm, Assessment, Networks, TensorBatch
from cdqn.errors import ConfigError

if TYPE_CHECKING:
    from cdqn.config import Config


class CDQN(Algorithm):
    """The convergent deep Q network (Eq. 12): the larger of DQN's loss and the Bellman residual."""

    name = "cdqn"
    label = "C-DQN"
    colour = "#0072B2"  # Okabe and Ito's blue
    convergent = True
    slow_mode = True

    @classmethod
    def check(cls, config: "Config") -> None:
        if config.target_copy == "exact" and config.target_period_updates == 1:
            raise ConfigError(
                "an exact copy after every update makes both terms of C-DQN's loss equal, and C-DQN becomes DQN: "
                "raise target_period_updates above 1, or use target_copy previous"
            )

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        import torch

        from cdqn import losses

        config = self.config
        facts = (batch.reward, batch.terminated, discount)
        # One pass for s and s′: the gradient of the residual flows through both.
        q_BA, next_q_BA = online["q"](torch.cat([batch.observation, batch.next_observation])).chunk(2)
        chooser_BA = next_q_BA.detach() if config.double_q else None
        frozen_BA = target["q"](batch.next_observation)
        dqn_B = losses.dqn_target(*facts, frozen_BA, chooser_BA, config.value_transform)
        msbe_B = losses.msbe_target(*facts, next_q_BA, config.value_transform)
        q_B = losses.action_value(q_BA, batch.action)
        terms = losses.cdqn_loss(q_B, dqn_B, msbe_B, batch.weight, config.loss == "huber")
        dqn_share = terms.on_dqn_branch.to(q_B.dtype).mean()
        return self.assessment(batch, q_BA, terms, (dqn_B, msbe_B), dqn_share=dqn_share)
