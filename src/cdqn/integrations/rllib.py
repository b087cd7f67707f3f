"""C-DQN inside RLlib (its new API stack): DQN with another loss, for those who outgrow one machine.

    from cdqn.integrations.rllib import CDQNConfig

    algorithm = CDQNConfig().environment("CartPole-v1").env_runners(num_env_runners=2).build_algo()

See docs/hosts/rllib.md.
"""

from typing import Any, Self

import gymnasium
import torch

from cdqn import losses
from cdqn.calibration import estimate_discount
from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing

try:
    from ray.rllib.algorithms.dqn.dqn import DQN, DQNConfig
    from ray.rllib.algorithms.dqn.dqn_learner import QF_NEXT_PREDS, QF_PREDS, QF_TARGET_NEXT_PREDS
    from ray.rllib.algorithms.dqn.torch.dqn_torch_learner import DQNTorchLearner
    from ray.rllib.core.columns import Columns
    from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME, TD_ERROR_KEY
except ImportError as error:
    raise missing("cdqn.integrations.rllib needs ray[rllib]", "rllib") from error

REPLAY_BUFFER = "cdqn.integrations.rllib_replay.FlooredEpisodeReplayBuffer"
"""As RLlib wants it: by name."""


class CDQNConfig(DQNConfig):  # type: ignore[misc]
    """RLlib's DQNConfig with one more argument of `training`, `loss`: "cdqn", "dqn" (the host's own) or "rg"."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class=algo_class or CDQN)
        self.loss: losses.LossName = "cdqn"
        self.replay_buffer_config |= {"type": REPLAY_BUFFER}

    def training(self, *, loss: losses.LossName | None = None, **kwargs: Any) -> Self:
        super().training(**kwargs)
        if loss is not None:
            self.loss = loss
        return self

    def calibrate(self, episodes: int = 20, horizon_multiplier: float = 15, seed: int = 0) -> Self:
        """Set γ from the rewards of random episodes in the environment (App. E.3): `estimate_discount`."""
        env = gymnasium.make(self.env, **self.env_config) if isinstance(self.env, str) else self.env(self.env_config)
        env.action_space.seed(seed)
        rewards: list[list[float]] = []
        for number in range(episodes):
            env.reset(seed=seed + number)
            rewards.append([])
            over = False
            while not over:
                _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
                rewards[-1].append(float(reward))
                over = terminated or truncated
        env.close()
        self.gamma = estimate_discount(rewards, horizon_multiplier)
        return self

    def validate(self) -> None:
        super().validate()
        losses.require_loss_name(self.loss)
        if not self.enable_rl_module_and_learner:
            raise ConfigError("C-DQN is for RLlib's new API stack: leave api_stack() at its defaults")
        if self.loss != "dqn" and not self.double_q:
            raise ConfigError(f"loss {self.loss} needs double_q=True, with which RLlib evaluates Q at the next states")
        if self.loss != "dqn" and self.num_atoms != 1:
            raise ConfigError(f"num_atoms is {self.num_atoms}: loss {self.loss} has no distributions, leave it at 1")

    def get_default_learner_class(self) -> Any:
        return CDQNTorchLearner


class CDQN(DQN):  # type: ignore[misc]
    """RLlib's DQN, as `CDQNConfig` says."""

    @classmethod
    def get_default_config(cls) -> CDQNConfig:
        return CDQNConfig()

    def _create_local_replay_buffer_if_necessary(self, config: Any) -> Any:
        kind = config["replay_buffer_config"]["type"]
        if isinstance(kind, type):  # Ray Tune has made a class of the name, and the host reads the name
            config["replay_buffer_config"]["type"] = f"{kind.__module__}.{kind.__qualname__}"
        return super()._create_local_replay_buffer_if_necessary(config)


class CDQNTorchLearner(DQNTorchLearner):  # type: ignore[misc]
    """RLlib's learner with another loss; and the target network gets the weights from before the step (App. E.1)."""

    def compute_loss_for_module(self, *, module_id: Any, config: Any, batch: Any, fwd_out: Any) -> Any:
        if config.loss == "dqn":
            return super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)
        shape = batch[Columns.REWARDS].shape
        weights = batch["weights"].reshape(-1)
        if Columns.LOSS_MASK in batch:
            mask = batch[Columns.LOSS_MASK].clone()
            mask[:, : config.burn_in_len] = False
            weights = weights * mask.reshape(-1) * (mask.numel() / mask.sum())
        q_BA, next_q_BA, frozen_BA = (
            fwd_out[name].reshape(-1, fwd_out[name].shape[-1])
            for name in (QF_PREDS, QF_NEXT_PREDS, QF_TARGET_NEXT_PREDS)
        )
        facts = (
            q_BA,
            batch[Columns.ACTIONS].reshape(-1).long(),
            batch[Columns.REWARDS].reshape(-1),
            batch[Columns.TERMINATEDS].reshape(-1).bool(),
            config.gamma ** batch["n_step"].reshape(-1),
            frozen_BA,
            next_q_BA,
        )
        huber = config.td_error_loss_fn == "huber"
        terms = losses.named_loss(config.loss, *facts, double_q=config.loss == "cdqn", weights=weights, huber=huber)
        loss = terms.loss.mean() * (1 if huber else 2)  # the host's "mse" is δ², ours is ½δ²
        with torch.no_grad():
            both = {name: losses.named_loss(name, *facts, double_q=name == "dqn") for name in ("dqn", "rg")}
        self.metrics.log_value((module_id, TD_ERROR_KEY), terms.td_error_abs.reshape(shape), reduce="item_series")
        found = {
            "qf_loss": loss,
            "qf_mean": q_BA.mean(),
            "td_error_mean": terms.td_error_abs.mean(),
            "dqn_share": terms.on_dqn_branch.to(q_BA.dtype).mean(),
            "loss_dqn": losses.logged_loss(both["dqn"].td_error_abs, weights),
            "loss_msbe": losses.logged_loss(both["rg"].td_error_abs, weights),
        }
        self.metrics.log_dict(found, key=module_id, window=1)
        return loss

    def apply_gradients(self, gradients_dict: Any) -> None:
        if self.config.loss == "cdqn":
            self._before_step = [parameter.detach().clone() for parameter in self._params.values()]
        super().apply_gradients(gradients_dict)

    def after_gradient_based_update(self, *, timesteps: Any) -> None:
        now = timesteps.get(NUM_ENV_STEPS_SAMPLED_LIFETIME, 0)
        last = min((self.last_update_ts_by_mid[name] for name in self.module._rl_modules), default=0)
        if self.config.loss != "cdqn" or now - last < self.config.target_network_update_freq:
            super().after_gradient_based_update(timesteps=timesteps)
            return
        after_step = [parameter.detach().clone() for parameter in self._params.values()]
        self._put(self._before_step)
        super().after_gradient_based_update(timesteps=timesteps)
        self._put(after_step)

    def _put(self, values: list[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self._params.values(), values, strict=True):
                parameter.copy_(value)
