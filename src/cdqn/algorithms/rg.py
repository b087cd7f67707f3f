"""RG, the residual gradient: the Bellman residual alone (Eq. 5)."""

from cdqn.algorithms.base import Algorithm, Assessment, Networks, TensorBatch


class RG(Algorithm):
    """The residual gradient (Eq. 5): the Bellman residual alone; no target network."""

    name = "rg"
    label = "RG"
    colour = "#009E73"  # Okabe and Ito's bluish green
    has_target = False
    convergent = True
    slow_mode = True

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        import torch

        from cdqn import losses

        config = self.config
        # One pass for s and s′: the gradient flows through both.
        q_BA, next_q_BA = online["q"](torch.cat([batch.observation, batch.next_observation])).chunk(2)
        target_B = losses.msbe_target(batch.reward, batch.terminated, discount, next_q_BA, config.value_transform)
        q_B = losses.action_value(q_BA, batch.action)
        terms = losses.msbe_loss(q_B, target_B, batch.weight, config.loss == "huber")
        return self.assessment(batch, q_BA, terms, (target_B,))
