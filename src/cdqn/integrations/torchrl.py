"""C-DQN inside TorchRL: a loss module that stands where its DQNLoss does.

    from cdqn.integrations.torchrl import CDQNLoss

    loss_module = CDQNLoss(q_value_actor, loss_function="smooth_l1")

See docs/hosts/torchrl.md.
"""

from typing import Any

import torch
from torch import Tensor

from cdqn import losses
from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing

try:
    from tensordict import TensorDict, TensorDictBase
    from tensordict.nn import dispatch
    from torchrl.objectives import DQNLoss
except ImportError as error:
    raise missing("cdqn.integrations.torchrl needs torchrl", "torchrl") from error

SCALES = {"l2": 2.0, "smooth_l1": 1.0}
"""The host's "l2" is δ², ours is ½δ²."""


class CDQNLoss(DQNLoss):  # type: ignore[misc]
    """TorchRL's DQNLoss with the loss of C-DQN, DQN or RG; its arguments, and one more.

    loss: "cdqn", "dqn" (the host's own) or "rg". Of the host's `loss_function` it knows "l2" and "smooth_l1".
    Beside "loss" the output holds "dqn_share", the part of the batch on DQN's branch, and "squared_td_error". γ is that
    of `make_value_estimator`, which must be TD(0); rows over several steps are understood (`steps_to_next_obs`).
    """

    def __init__(self, value_network: Any, *, loss: losses.LossName = "cdqn", **kwargs: Any) -> None:
        losses.require_loss_name(loss)
        if loss == "cdqn" and not kwargs.get("delay_value", True):
            raise ConfigError("without a target network both terms of C-DQN's loss are equal: leave delay_value True")
        if (function := kwargs.get("loss_function", "l2")) not in SCALES:
            raise ConfigError(f"loss_function is {function!r}: choose 'l2' or 'smooth_l1'")
        super().__init__(value_network, **kwargs)
        self.loss = loss

    @dispatch  # type: ignore[untyped-decorator]
    def forward(self, tensordict: TensorDictBase) -> TensorDict:
        """The loss of a batch; |δ|² of each row is written into it, for prioritized sampling."""
        q_BA, next_q_BA = self._online_values(tensordict)
        with torch.no_grad():
            frozen_BA = self._values(tensordict.get("next"), self.target_value_network_params)
        reward_B = tensordict.get(("next", self.tensor_keys.reward)).reshape(-1)
        weights = self._weights(tensordict)
        terms = losses.named_loss(
            self.loss,
            q_BA,
            self._actions(tensordict, q_BA),
            reward_B,
            tensordict.get(("next", self.tensor_keys.terminated)).reshape(-1),
            self._discounts(tensordict, reward_B),
            frozen_BA,
            next_q_BA,
            double_q=self.double_dqn,
            huber=self.loss_function == "smooth_l1",
        )
        squared = terms.td_error_abs.square()
        tensordict.set(self.tensor_keys.priority, squared.reshape(*tensordict.shape, 1), inplace=True)
        per_row = SCALES[self.loss_function] * terms.loss.reshape(tensordict.shape)
        loss = self._reduce_loss(per_row, tensordict=tensordict, weights=weights)
        share = terms.on_dqn_branch.to(q_BA.dtype).mean()
        found = TensorDict(loss=loss, dqn_share=share, squared_td_error=squared.mean())
        self._clear_weakrefs(tensordict, found, "value_network_params", "target_value_network_params")
        return found

    def _online_values(self, tensordict: TensorDictBase) -> tuple[Tensor, Tensor | None]:
        """Q of both ends of the transitions, in one pass where the gradient flows through both."""
        if self.loss != "dqn":
            keys = self.value_network.in_keys
            both = torch.cat([rows.select(*keys).reshape(-1) for rows in (tensordict, tensordict.get("next"))])
            q_BA, next_q_BA = self._values(both, self.value_network_params).chunk(2)
            return q_BA, next_q_BA
        q_BA = self._values(tensordict, self.value_network_params)
        if not self.double_dqn:
            return q_BA, None
        with torch.no_grad():
            return q_BA, self._values(tensordict.get("next"), self.value_network_params)

    def _values(self, rows: TensorDictBase, params: Any) -> Tensor:
        with params.to_module(self.value_network, preserve_module_state=False):
            q = self.value_network(rows.select(*self.value_network.in_keys)).get(self.tensor_keys.action_value)
        q_BA: Tensor = q.reshape(-1, q.shape[-1])
        return q_BA

    def _actions(self, tensordict: TensorDictBase, q_BA: Tensor) -> Tensor:
        action = tensordict.get(self.tensor_keys.action)
        one_hot = self.action_space != "categorical"
        action_B: Tensor = action.reshape(q_BA.shape).long().argmax(1) if one_hot else action.reshape(-1)
        return action_B

    def _discounts(self, tensordict: TensorDictBase, reward_B: Tensor) -> Tensor:
        """γ, or γⁿ where the host's MultiStep has summed n rewards."""
        gamma: Tensor = self.value_estimator.gamma
        steps = tensordict.get(self.value_estimator.tensor_keys.steps_to_next_obs, None)
        return gamma if steps is None else gamma ** steps.reshape(reward_B.shape)

    def _weights(self, tensordict: TensorDictBase) -> Tensor | None:
        key = self.tensor_keys.priority_weight
        wanted = self.use_prioritized_weights in (True, "auto") and key in tensordict
        return tensordict.get(key) if wanted else None
