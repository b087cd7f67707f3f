"""Everything a run can be told, in one frozen dataclass that rejects what cannot work.

Units are in the names: a *step* is one decision of the agent, an *update* one step of the optimizer. `None` means "not
set": `resolved()` fills it in where it acts. A setting that cannot act is an error, and is not silently ignored.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from cdqn.algorithms import ALGORITHMS, Algorithm, find_algorithm
from cdqn.algorithms.base import TARGET_SETTINGS
from cdqn.errors import CheckpointError, ConfigError
from cdqn.schedules import are_drops
from cdqn.storage import plain_values as plain
from cdqn.storage.named_code import PIECES, is_code_name, name_of, wrapper_texts

PREPROCESSING = ("frame_size", "sticky_actions", "time_limit_steps")
"""What acts on the Atari environment itself."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of a run. Defaults are for vector observations (classic control) on a CPU."""

    algorithm: str = "cdqn"
    """cdqn (the convergent one), dqn, rg (the residual gradient), or module:Class for one of your own."""
    seed: int = 0
    """Seed of everything random: weights, exploration, replay, environments."""
    steps: int = 50_000
    """How long to train, in steps of the agent; exploration and learning rate follow schedules over this budget."""
    gamma: float | None = None
    """Discount factor (γ): what a reward one step later is worth. Default: 0.99, or found by horizon_multiplier."""
    horizon_multiplier: float | None = None
    """Find the discount factor, and a scale for Q, from the rewards of the warm-up; 15 in the paper."""
    n_step: int = 1
    """Rewards summed before Q of a later state takes over (n-step returns). 1 in the paper, 3 in Rainbow."""
    env_kwargs: str | None = None
    """What the environment is made with, as JSON: '{"continuous": false}'; in Python a dict."""
    wrapper: tuple[str, ...] = ()
    """Wrappers around the environment, innermost first: module:Name or module:Name(arguments); in Python the class."""
    num_envs: int = 4
    """Environments played side by side; actions for all of them are chosen in one forward pass."""
    normalize_observations: bool = False
    """Learn from vectors less their running mean, over their deviation, clipped to ±10; saved with the agent."""
    normalize_rewards: bool = False
    """Learn from rewards divided by their typical size in the warm-up (root mean square, zeros left out)."""
    reward_clip: bool = False
    """Learn from rewards clipped to [−1, 1]; returns are reported in raw scores all the same."""
    frame_size: tuple[int, int] | None = None
    """Height and width of a frame. Default: 105×80, the screen downscaled by 2."""
    sticky_actions: float | None = None
    """Chance that the emulator repeats the last action. Default: 0 (0.25 for names ending in -v5)."""
    time_limit_steps: int | None = None
    """Steps after which a game is cut off. Default: 20 000."""

    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers; the last one is that of each dueling stream. None at all: a table of Q."""
    channels: tuple[int, int, int] | None = None
    """Channels of the three convolutions, for Atari and other images. Default: 32, 64, 64."""
    dueling: bool = True
    """Learn the value of a state and the advantages of its actions in two streams (Q = V + A − mean A)."""
    network: str | None = None
    """Your own: module:function, from the environment's spec to an nn.Module. Default: by the kind of observation."""
    initial_weights: Literal["he", "pytorch"] = "he"
    """First weights: he (He et al.), or pytorch's own, √6 times smaller, with which Q begins nearly flat."""

    loss: Literal["huber", "mse"] = "huber"
    """huber: quadratic for small errors, linear beyond 1; or mse: half of the squared error everywhere."""
    value_transform: bool = False
    """Learn Q squashed roughly to its square root, for rewards of very different sizes (Sec. 5.3)."""
    double_q: bool | None = None
    """Double Q-learning: one network chooses the next action, the other values it. Default: on; RG has none."""
    learning_rate: float = 5e-4
    """Step size of the optimizer, Adam, at the beginning."""
    learning_rate_decay: float = 0.1
    """Step size at the end of the budget, as a share of the first, approached linearly; 1 in the paper."""
    learning_rate_drops: tuple[tuple[float, float], ...] = ()
    """Drops of the step size: pairs of a share of the budget and the factor from there on. Default: none."""
    adam_epsilon: float = 1e-5
    """Adam's small constant (ε_a), which bounds the step where gradients vanish."""
    batch_size: int = 32
    """Transitions per update."""
    gradient_clip_norm: float = 10.0
    """Largest norm of the gradient; a larger one is scaled down to it. inf: no clipping."""
    update_period_steps: int = 1
    """Steps of the agent per update: 1 where environments are cheap; 4 in the paper."""
    target_period_updates: int | None = None
    """Updates between two copies to the target network: few for C-DQN, many for DQN; RG has no target network."""
    target_copy: Literal["previous", "exact"] | None = None
    """What is copied: previous, the weights before the update at hand (the paper's way); or exact, those after it."""
    warmup_steps: int = 1_000
    """Steps with random actions before the first update."""

    replay: str = "prioritized"
    """How transitions are sampled: prioritized, uniform, or module:Class for a memory of your own."""
    memory_size: int = 100_000
    """Transitions kept."""
    eviction: Literal["fifo", "random"] = "fifo"
    """What a full memory overwrites: fifo, the oldest transition; or random, any one."""
    discard_fraction: float = 0.0
    """Share of transitions that are never stored: 0.5 in Fig. 5 of the paper."""
    alpha: float | None = None
    """How strongly sampling prefers large errors (α): 0 not at all, 1 in proportion. Default: 0.6."""
    beta_start: float | None = None
    """How far weights make up for that preference (β), at the first step; in full (1) at the last. Default: 0.4."""
    priority_scheme: Literal["floor", "original"] | None = None
    """floor: no priority falls far below the mean (App. E.2); or original, as in Schaul et al. Default: floor."""
    priority_epsilon: float | None = None
    """Small constant added to every error, so that none has priority 0 (ε_p). Default: 1e-10."""
    floor_divisor: float | None = None
    """No priority falls below the mean divided by this, no weight exceeds twice this. Default: 10."""
    initial_priority: float | None = None
    """Priority of transitions collected before the first update; α is not applied to it. Default: 100."""
    raise_predecessor: bool | None = None
    """A large error raises the priority of the transition before it as well. Default: on."""

    exploration: str = "epsilon"
    """epsilon: random actions of one step; epsilon-z: held for a random time (Dabney et al.); or module:Class."""
    epsilon_middle: float = 0.1
    """Share of random actions (ε) at the end of its first, exponential fall."""
    epsilon_final: float = 0.01
    """Share of random actions at the end of its second, linear fall, and from there on."""
    epsilon_middle_fraction: float = 0.1
    """Share of the budget after which the first fall ends; 0.02 in the paper, of a far larger budget."""
    epsilon_final_fraction: float = 0.8
    """Share of the budget after which the second fall ends."""

    environment_timeout_seconds: float | None = None
    """Give up when the environment does not return from a reset or a step in this time. Default: never."""
    log_period_steps: int = 1_000
    """Steps between two lines of metrics."""
    checkpoint_period_steps: int = 10_000
    """Steps between two checkpoints."""
    evaluation_period_steps: int | None = None
    """Steps between two greedy evaluations during training. Default: only one, at the end."""
    evaluation_episodes: int = 20
    """Episodes of a greedy evaluation."""
    candidate_period_steps: int | None = None
    """Steps between two candidates for the paper's test (App. B.4: 10 000). Default: none are kept."""
    device: str = "auto"
    """Where the networks are: auto (a GPU for images, if there is one), cpu, cuda, cuda:1 and so on, or mps."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Compile the update into one program: auto does so where it pays and a C++ compiler is found."""

    def __post_init__(self) -> None:
        self._require_set()
        self._normalize()
        for name, allowed_range in _RANGES.items():
            plain.require_number(name, getattr(self, name), allowed_range)
        for name, allowed in _CHOICES.items():
            plain.require_choice(name, getattr(self, name), allowed, is_code_name if name in PIECES else None)
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool | None):
                raise ConfigError(f"{name} is {getattr(self, name)!r}: it must be True or False")
        for name, count, wanted in _SIZES:
            plain.require_sizes(name, getattr(self, name), count, wanted)
        for name, given in (("network", self.network), *(("wrapper", wrap) for wrap in self.wrapper)):
            if given is not None and not (isinstance(given, str) and is_code_name(given)):
                raise ConfigError(f"{name} is {given!r}: it must be module:Name, or the class or function itself")
        plain.read_object("env_kwargs", self.env_kwargs)
        plain.require_device(self.device)
        if not are_drops(self.learning_rate_drops):
            raise ConfigError(
                f"learning_rate_drops is {self.learning_rate_drops!r}: it must be pairs of a share of the budget, "
                "rising within (0, 1], and a factor above 0"
            )
        self._check_idle()
        self._check_sizes()

    def _require_set(self) -> None:
        """None means "not set", which only some settings can be."""
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is None and field.default is not None:
                raise ConfigError(f"{field.name} is None: it must have a value, by default {field.default!r}")

    def _normalize(self) -> None:
        """Numbers of NumPy become Python's, a list of widths a tuple, a class its name: they say the same."""
        for name in (field.name for field in dataclasses.fields(self)):
            value = getattr(self, name)
            if name in PIECES and callable(value):
                value = name_of(value)
            elif name == "wrapper":
                value = wrapper_texts(value)
            elif name in _PLAIN and (value is not None or name == "hidden"):
                value = _PLAIN[name](value)
            elif isinstance(value, np.generic):
                value = value.item()
            object.__setattr__(self, name, value)

    def _check_idle(self) -> None:
        """A setting that cannot act is an error, and is not silently ignored."""
        algorithm = self.algorithm_class
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in algorithm.all_idle_settings():
            if name not in defaults:
                raise ConfigError(f"idle_settings of {self.algorithm} names {name!r}: there is no such setting")
            value, default = getattr(self, name), defaults[name]
            if value not in (None, default) and not (default is None and value is False):
                reason = "has no target network" if name in TARGET_SETTINGS else f"does not use {name}"
                raise ConfigError(f"{self.algorithm} {reason}: drop {name}")
        algorithm.check(self)
        if self.dueling and not self.hidden:
            raise ConfigError("hidden is (): a table of Q has no dueling streams; give widths, or add --no-dueling")
        for _, _, problem in at_odds(vars(self)):
            raise ConfigError(problem)

    def _check_sizes(self) -> None:
        if self.memory_size < self.batch_size:
            raise ConfigError(
                f"memory_size is {self.memory_size}, below batch_size {self.batch_size}: no batch could be drawn"
            )
        if self.warmup_steps * (1 - self.discard_fraction) < self.batch_size:
            raise ConfigError(
                f"warmup_steps is {self.warmup_steps} with discard_fraction {self.discard_fraction}: "
                f"the first update needs batch_size {self.batch_size} transitions; raise warmup_steps"
            )
        if self.epsilon_middle_fraction > self.epsilon_final_fraction:
            raise ConfigError(
                f"epsilon_middle_fraction {self.epsilon_middle_fraction} comes after "
                f"epsilon_final_fraction {self.epsilon_final_fraction}: swap or change them"
            )

    def resolved(self) -> Self:
        """A copy in which each setting that acts has its value."""
        fill: dict[str, Any] = {} if self.horizon_multiplier else {"gamma": 0.99}
        if self.algorithm_class.has_target:
            fill |= _TARGET_DEFAULTS
        if self.replay == "prioritized":
            fill |= _PRIORITIZED_DEFAULTS
            if self.priority_scheme == "original":
                del fill["floor_divisor"]
        return self.filled(fill)

    @property
    def algorithm_class(self) -> type[Algorithm]:
        """The algorithm itself."""
        return find_algorithm(self.algorithm)

    @property
    def environment_kwargs(self) -> dict[str, Any]:
        """`env_kwargs`, read."""
        return plain.read_object("env_kwargs", self.env_kwargs)

    @property
    def preprocessing(self) -> dict[str, Any]:
        """What is asked of the Atari environment."""
        return {name: getattr(self, name) for name in PREPROCESSING if getattr(self, name) is not None}

    def filled(self, defaults: Mapping[str, Any]) -> Self:
        """A copy in which what is not set has these values."""
        return dataclasses.replace(self, **{k: v for k, v in defaults.items() if getattr(self, k) is None})

    def to_json(self) -> dict[str, Any]:
        """Plain values, in the order of the fields."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], source: str) -> Self:
        """The inverse of `to_json`; `source` names the file in errors."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(values) - known):
            raise CheckpointError(
                f"{source} has unknown settings {', '.join(unknown)}: it was written by another version of cdqn"
            )
        try:
            return cls(**values)
        except (ConfigError, TypeError) as error:
            raise CheckpointError(f"{source} is damaged: {error}") from error


_TARGET_DEFAULTS: dict[str, Any] = {"double_q": True, "target_period_updates": 100, "target_copy": "previous"}

_PRIORITIZED_DEFAULTS: dict[str, Any] = {
    "alpha": 0.6,
    "beta_start": 0.4,
    "priority_scheme": "floor",
    "priority_epsilon": 1e-10,
    "floor_divisor": 10.0,
    "initial_priority": 100.0,
    "raise_predecessor": True,
}

_AT_ODDS_WITH_HORIZON = {
    "gamma": "finds γ by itself",
    "reward_clip": "finds γ and the scale of Q from raw rewards",
    "normalize_rewards": "normalises Q, and rewards with it",
    "n_step": "finds γ after the warm-up, and returns over several steps need it from the first step on",
}


def at_odds(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Pairs of settings of which only one can act, and the sentence that says so."""
    if settings.get("replay") == "uniform":
        for name in _PRIORITIZED_DEFAULTS:
            if settings.get(name) is not None:
                yield "replay", name, f"uniform replay has no priorities: drop {name}, or use prioritized replay"
    if settings.get("priority_scheme") == "original" and settings.get("floor_divisor") is not None:
        yield "priority_scheme", "floor_divisor", "the original priority scheme has no floor: drop floor_divisor"
    if settings.get("horizon_multiplier") is not None:
        for name, why in _AT_ODDS_WITH_HORIZON.items():
            value = settings.get(name)
            if value not in (None, False) and (name, value) != ("n_step", 1):
                yield "horizon_multiplier", name, f"horizon_multiplier {why}: drop {name} {value}, or the former"


_RANGES: dict[str, plain.Range] = {
    "seed": (lambda v: isinstance(v, int) and 0 <= v < 2**63, "a whole number from 0 on"),
    "sticky_actions": (lambda v: 0 <= v < 1, "within [0, 1)"),
    "learning_rate_decay": (lambda v: 0 < v <= 1, "within (0, 1]"),
    "gradient_clip_norm": (lambda v: v > 0, "a number above 0, or inf for no clipping"),
    "discard_fraction": (lambda v: 0 <= v < 1, "within [0, 1)"),
    "floor_divisor": (lambda v: v > 1 and math.isfinite(v), "a number above 1"),
    "epsilon_middle": (lambda v: 0 < v <= 1, "within (0, 1]"),
    "num_envs": (lambda v: isinstance(v, int) and 1 <= v <= 4096, "a whole number from 1 to 4096"),
}
for _names, _range in {
    "gamma alpha beta_start epsilon_final epsilon_middle_fraction epsilon_final_fraction": plain.UNIT,
    "horizon_multiplier initial_priority learning_rate adam_epsilon priority_epsilon": plain.POSITIVE,
    "environment_timeout_seconds": plain.POSITIVE,
    "steps warmup_steps n_step batch_size update_period_steps target_period_updates memory_size": plain.COUNT,
    "log_period_steps checkpoint_period_steps evaluation_period_steps candidate_period_steps": plain.COUNT,
    "evaluation_episodes time_limit_steps": plain.COUNT,
}.items():
    _RANGES |= dict.fromkeys(_names.split(), _range)
_SIZES: tuple[tuple[str, int | None, str], ...] = (
    ("hidden", None, "widths"),
    ("channels", 3, "three numbers of channels"),
    ("frame_size", 2, "a height and a width"),
)
_PLAIN = {"env_kwargs": plain.object_text, "learning_rate_drops": plain.pairs}
_PLAIN |= dict.fromkeys((name for name, _, _ in _SIZES), plain.numbers)
_FLAGS = [field.name for field in dataclasses.fields(Config) if field.type in (bool, bool | None)]
_CHOICES = {
    "algorithm": tuple(ALGORITHMS),
    "initial_weights": ("he", "pytorch"),
    "loss": ("huber", "mse"),
    "target_copy": ("previous", "exact"),
    "replay": ("prioritized", "uniform"),
    "eviction": ("fifo", "random"),
    "priority_scheme": ("floor", "original"),
    "exploration": ("epsilon", "epsilon-z"),
    "compile": ("auto", "on", "off"),
}
