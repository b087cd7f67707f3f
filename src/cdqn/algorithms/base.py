"""What an algorithm is: its networks, its loss, what it reports, and which settings act on it.

One of your own is a class with a few attributes and one method, `assess`; see docs/extending.md. The learner calls

    networks(spec, build)                     once: what there is to learn
    assess(batch, online, target, discount)   for each update: the loss, |δ| and statistics of a batch
    q_values(online, observation)             to act

and does the rest: gradients (eager or compiled), clipping, Adam, copies to the target networks, checkpoints.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn

from cdqn import losses
from cdqn.value_transform import unsquash

if TYPE_CHECKING:
    from cdqn.config import Config
    from cdqn.envs import EnvSpec

Forward = Callable[[Tensor], Tensor]
Networks = Mapping[str, Forward]
"""The networks of an algorithm by name, each a function of a batch of observations."""
TARGET_SETTINGS = ("double_q", "target_period_updates", "target_copy")
"""What acts on the term of the target network."""


class TensorBatch(NamedTuple):
    """A batch as the loss sees it."""

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    terminated: Tensor
    weight: Tensor
    """Importance weights of prioritized replay; ones elsewhere."""


class Assessment(NamedTuple):
    """A batch under the present θ and θ̃."""

    loss: Tensor
    """The loss of each sample, importance weights included; its mean is minimised."""
    td_error_abs: Tensor
    """|δ| of each sample in units of Q, detached: the source of priorities."""
    statistics: dict[str, Tensor]
    """Means over the batch, by name, for the log; "loss" and "q_mean" among them."""


class Network(NamedTuple):
    """A network that an algorithm learns."""

    module: nn.Module
    has_target: bool = True
    """Whether a copy of older parameters is kept, which `assess` gets in `target`."""
    learning_rate_factor: float = 1.0
    """Its step size, as a multiple of the setting `learning_rate`."""
    slow_copy_updates: int | None = None
    """Over how many updates n a second, slow copy follows: θ̄ ← θ̄ + (θ − θ̄) 10/n after every tenth. `assess` gets it in
    `target`, as "q_slow" if the network is "q"."""


class BuildNetwork(Protocol):
    """Makes a network for the environment's observations as the settings say: kind, widths, first weights."""

    def __call__(self, outputs: int, dueling: bool | None = None, head_on: nn.Module | None = None) -> nn.Module:
        """With this many outputs; `dueling` is by default as the setting says.

        `head_on`: another network, for whose features this is to be a second head; if that one is "q", `assess` finds
        them as `online["q_features"]`.
        """


class Algorithm(ABC):
    """The interface of an algorithm; `self.config` holds the settings of the run."""

    name: ClassVar[str]
    """As the user types it and as it stands in files."""
    label: ClassVar[str]
    """As people read it."""
    colour: ClassVar[str]
    """In pictures."""
    has_target: ClassVar[bool] = True
    """Without a target network the settings of one are refused."""
    idle_settings: ClassVar[tuple[str, ...]] = ()
    """Other settings that do not act on it, and are refused."""
    convergent: ClassVar[bool] = False
    """Whether its loss cannot diverge for small steps; else a diverging run is advised to use C-DQN."""
    slow_mode: ClassVar[bool] = False
    """Whether an error common to all of Q decays slowly (docs/tuning.md), of which a run then warns."""

    def __init__(self, config: "Config") -> None:
        self.config = config

    @classmethod  # noqa: B027  most algorithms have nothing to refuse
    def check(cls, config: "Config") -> None:
        """Raise a ConfigError for settings that cannot work together in this algorithm."""

    @classmethod
    def all_idle_settings(cls) -> tuple[str, ...]:
        """Settings that do not act on it, those of the target network included."""
        return cls.idle_settings + (() if cls.has_target else TARGET_SETTINGS)

    def networks(self, spec: "EnvSpec", build: BuildNetwork) -> dict[str, Network]:
        """What is learned, by name. Here one network of Q values, "q", with a target network if there is one."""
        return {"q": Network(build(spec.num_actions), self.has_target)}

    def q_values(self, online: Networks, observation: Tensor) -> Tensor:
        """Q of each action, in units of Q: what is acted upon. Here the outputs of "q"."""
        q_BA = online["q"](observation)
        return unsquash(q_BA) if self.config.value_transform else q_BA

    @abstractmethod
    def assess(self, batch: TensorBatch, online: Networks, target: Networks, discount: float) -> Assessment:
        """The loss of each sample, |δ|, and statistics. `discount` is γⁿ.

        The gradient is taken with respect to the parameters of `online`. No branching on values: it is compiled.
        """

    def assessment(
        self,
        batch: TensorBatch,
        q_BA: Tensor,
        terms: losses.LossTerms,
        targets: tuple[Tensor, ...],
        **statistics: Tensor,
    ) -> Assessment:
        """An assessment from one of `cdqn.losses`, with what every algorithm reports.

        Under the value transform |δ| and Q are brought back to units of Q.
        """
        td_error_abs_B, value_B = terms.td_error_abs, q_BA.detach().amax(1)
        if self.config.value_transform:
            q_B = losses.action_value(q_BA, batch.action)
            errors = (losses.untransformed_td_error(q_B, target_B) for target_B in targets)
            td_error_abs_B = functools.reduce(Tensor.maximum, errors)
            value_B = unsquash(value_B)
        common = {"loss": losses.logged_loss(terms.td_error_abs, batch.weight), "q_mean": value_B.mean()}
        return Assessment(terms.loss, td_error_abs_B, common | statistics)
