"""C-DQN inside Stable-Baselines3: its DQN with another loss; everything else is the host's own.

    from cdqn.integrations.sb3 import CDQN

    model = CDQN("MlpPolicy", "CartPole-v1").learn(50_000)

See docs/hosts/stable_baselines3.md.
"""

import warnings
from typing import Any, cast

import numpy as np
import torch

from cdqn import losses
from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing

try:
    from stable_baselines3 import DQN

    from cdqn.integrations.sb3_replay import PrioritizedReplayBuffer, PrioritizedSamples
except ImportError as error:
    raise missing("cdqn.integrations.sb3 needs stable-baselines3", "sb3") from error


class CDQN(DQN):
    """Stable-Baselines3's DQN with the loss of C-DQN, DQN or RG; its arguments, and three more by keyword.

    loss: "cdqn", "dqn" (the host's own, step for step) or "rg".
    double_q: the online network chooses the action that the target network values.
    prioritized: `PrioritizedReplayBuffer` as the replay buffer, unless `replay_buffer_class` names another.
    """

    def __init__(
        self,
        policy: Any,
        env: Any,
        *args: Any,
        loss: losses.LossName = "cdqn",
        double_q: bool = False,
        prioritized: bool = False,
        **kwargs: Any,
    ) -> None:
        losses.require_loss_name(loss)
        if loss == "rg" and double_q:
            raise ConfigError("double_q acts on the target network, which RG does not have: leave it out")
        self.loss = loss
        self.double_q = double_q
        if prioritized and kwargs.get("n_steps", 1) > 1:
            raise ConfigError("prioritized replay takes single steps here: leave n_steps at 1")
        if prioritized:
            kwargs.setdefault("replay_buffer_class", PrioritizedReplayBuffer)
        super().__init__(policy, env, *args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        unit, every = self.train_freq.unit.value, self.train_freq.frequency  # type: ignore[union-attr]
        fresh = unit == "step" and self.target_update_interval <= every and self.gradient_steps == 1
        if self.loss == "cdqn" and fresh and self.tau == 1:
            warnings.warn(
                f"target_update_interval {self.target_update_interval} copies the network before every update "
                f"(train_freq {every}): both terms of C-DQN's loss are then equal, and it is DQN. Raise it",
                stacklevel=4,
            )

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """As in the host, with another loss, and priorities where the replay buffer has them."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        assert self.replay_buffer is not None
        found = []
        for _ in range(gradient_steps):
            if isinstance(self.replay_buffer, PrioritizedReplayBuffer):
                self.replay_buffer.set_progress(1 - self._current_progress_remaining)
            data = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            terms = self._loss_of(data)
            self.policy.optimizer.zero_grad()
            loss = terms.loss.mean()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            if isinstance(self.replay_buffer, PrioritizedReplayBuffer):
                self.replay_buffer.update_priorities(cast(PrioritizedSamples, data).slots, terms.td_error_abs)
            share = terms.on_dqn_branch.to(loss.dtype).mean()
            found.append((loss.item(), losses.logged_loss(terms.td_error_abs).item(), share.item()))
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        if found:
            for name, value in zip(("loss", "squared_td_error", "dqn_share"), np.mean(found, axis=0), strict=True):
                self.logger.record(f"train/{name}", value)

    def _loss_of(self, data: Any) -> losses.LossTerms:
        """What the loss says of a batch; each network is called as seldom as the loss allows."""
        frozen_BA = None
        if self.loss != "rg":
            with torch.no_grad():
                frozen_BA = self.q_net_target(data.next_observations)
        if self.loss == "dqn":
            q_BA, next_q_BA = self.q_net(data.observations), None
            if self.double_q:
                with torch.no_grad():
                    next_q_BA = self.q_net(data.next_observations)
        else:
            q_BA, next_q_BA = self.q_net(_one_batch(data.observations, data.next_observations)).chunk(2)
        return losses.named_loss(
            self.loss,
            q_BA,
            data.actions.long().flatten(),
            data.rewards.flatten(),
            data.dones.flatten().bool(),
            self.gamma if data.discounts is None else data.discounts.flatten(),
            frozen_BA,
            next_q_BA,
            double_q=self.double_q,
            weights=getattr(data, "weights", None),
        )


def _one_batch(observations: Any, next_observations: Any) -> Any:
    """Both in one pass: the gradient of the residual flows through either."""
    if isinstance(observations, dict):
        return {name: torch.cat([value, next_observations[name]]) for name, value in observations.items()}
    return torch.cat([observations, next_observations])
