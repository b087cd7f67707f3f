"""The settings of `cdqn.Config` as keyword arguments, so that an editor can complete them.

The names are those of the configuration's fields (a test compares them); the types are what Python may give: a class
where a run folder has its name, a dict where it has JSON.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

Code = str | Callable[..., Any]
"""module:Name, or the class or function itself."""


class Settings(TypedDict, total=False):
    """Every setting but the algorithm, which an agent is made of."""

    seed: int
    steps: int
    gamma: float | None
    horizon_multiplier: float | None
    n_step: int
    env_kwargs: Mapping[str, Any] | str | None
    wrapper: Code | Sequence[Code]
    num_envs: int
    normalize_observations: bool
    normalize_rewards: bool
    reward_clip: bool
    frame_size: Sequence[int] | None
    sticky_actions: float | None
    time_limit_steps: int | None
    hidden: Sequence[int]
    channels: Sequence[int] | None
    dueling: bool
    network: Code | None
    initial_weights: Literal["he", "pytorch"]
    loss: Literal["huber", "mse"]
    value_transform: bool
    double_q: bool | None
    learning_rate: float
    learning_rate_decay: float
    learning_rate_drops: Sequence[tuple[float, float]]
    adam_epsilon: float
    batch_size: int
    gradient_clip_norm: float
    update_period_steps: int
    target_period_updates: int | None
    target_copy: Literal["previous", "exact"] | None
    warmup_steps: int
    replay: Code
    memory_size: int
    eviction: Literal["fifo", "random"]
    discard_fraction: float
    alpha: float | None
    beta_start: float | None
    priority_scheme: Literal["floor", "original"] | None
    priority_epsilon: float | None
    floor_divisor: float | None
    initial_priority: float | None
    raise_predecessor: bool | None
    exploration: Code
    epsilon_middle: float
    epsilon_final: float
    epsilon_middle_fraction: float
    epsilon_final_fraction: float
    environment_timeout_seconds: float | None
    log_period_steps: int
    checkpoint_period_steps: int
    evaluation_period_steps: int | None
    evaluation_episodes: int
    candidate_period_steps: int | None
    device: str
    compile: Literal["auto", "on", "off"]
