"""DQN: the target of a frozen network (Eq. 10)."""

from cdqn.algorithms.base import Algorithm, Assessment, Networks, TensorBatch


class DQN(Algorithm):
    """The deep Q network (Eq. 10), with double Q-learning, dueling and prioritized replay."""

    name = "dqn"
    label = "DQN"
    colour = "#D55E00"  # Okabe and Ito's vermilion

    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        from cdqn import losses

        config = self.config
        q_BA = online["q"](batch.observation)
        chooser_BA = online["q"](batch.next_observation).detach() if config.double_q else None
        target_B = losses.dqn_target(
            batch.reward,
            batch.terminated,
            discount,
            target["q"](batch.next_observation),
            chooser_BA,
            config.value_transform,
        )
        q_B = losses.action_value(q_BA, batch.action)
        terms = losses.dqn_loss(q_B, target_B, batch.weight, config.loss == "huber")
        return self.assessment(batch, q_BA, terms, (target_B,))
