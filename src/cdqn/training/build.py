"""From a configuration to the parts of a run: networks, learner, replay memory.

The one place that chooses by the kind of observation.
"""

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import psutil
import torch
from gymnasium.vector import VectorEnv
from torch import nn

from cdqn.algorithms import Algorithm, Assessment, Network, TensorBatch
from cdqn.config import Config
from cdqn.envs import EnvLike, EnvSpec, atari_game, observation_adapter
from cdqn.envs.evaluation import REWARD, carries
from cdqn.errors import CdqnError, ConfigError
from cdqn.nn.features import second_head
from cdqn.nn.networks import make_network
from cdqn.replay import ArrayStore, PrioritizedReplay, Replay, Store, UniformReplay
from cdqn.storage.named_code import is_code_name, named, named_wrappers
from cdqn.training.learner import Learner

MAKING = ("env_kwargs", "wrapper")
"""Settings with which an environment is made."""


def how_to_make(env: EnvLike, config: Config) -> dict[str, Any]:
    """What `make_vec` is told besides the environment."""
    if atari_game(env):
        return {"preprocessing": config.preprocessing}
    return {"kwargs": config.environment_kwargs, "wrappers": named_wrappers(config.wrapper)}


def notices_of(env: VectorEnv[Any, Any, Any]) -> Iterator[str]:
    """What the user should know of an environment before training."""
    adapter = observation_adapter(env)
    if adapter is not None and adapter.dropped:
        yield f"the environment's observation has text, which is left out: {', '.join(adapter.dropped)}"
    if carries(env, REWARD):
        yield (
            f"the environment's {REWARD} scales its rewards: returns in training are in its units, in evaluate "
            "in the environment's own; the setting normalize_rewards scales what is learned, and no return"
        )


def make_learner(spec: EnvSpec, config: Config) -> Learner:
    """The learner with which a run begins: a function of its configuration, the seed included."""
    if config.normalize_observations:  # what its networks see is no longer what the environment shows
        spec = dataclasses.replace(spec, observation_dtype=np.dtype(np.float32))
    device = choose_device(config.device, spec.has_frames)
    algorithm = config.algorithm_class(config.resolved())
    networks = first_networks(spec, config, algorithm)
    networks = {name: part._replace(module=part.module.to(device)) for name, part in networks.items()}
    learner = Learner(networks, config, algorithm)
    if is_code_name(config.algorithm):
        _try_out(learner, spec)
    return learner


def first_networks(spec: EnvSpec, config: Config, algorithm: Algorithm) -> dict[str, Network]:
    """The networks of the algorithm, with their first weights."""

    def build(outputs: int, dueling: bool | None = None, head_on: nn.Module | None = None) -> nn.Module:
        dueling = config.dueling if dueling is None else dueling
        if head_on is not None:
            return second_head(head_on, outputs, dueling, config.initial_weights)
        if config.network is not None:
            return _own_network(dataclasses.replace(spec, num_actions=outputs), config.network)
        if not config.hidden and spec.kind != "discrete":
            raise ConfigError(
                "hidden is empty, and a table is for numbered states: this environment has "
                f"{spec.kind} observations of shape {spec.observation_shape}; give widths, --hidden 128 128"
            )
        if not config.hidden and config.initial_weights != "he":
            raise ConfigError(
                f"initial_weights {config.initial_weights!r}: a table has first values of its own; drop it"
            )
        board = spec.kind == "board"
        return make_network(
            spec.observation_shape, outputs, config.hidden, dueling, config.channels, config.initial_weights, board
        )

    with torch.random.fork_rng(devices=[]):  # the caller's random numbers are none of our business
        torch.manual_seed(config.seed)
        return algorithm.networks(spec, build)


def _own_network(spec: EnvSpec, name: str) -> nn.Module:
    """The network of a user, after a look at what it is."""
    network = named("network", name)(spec)
    if not isinstance(network, nn.Module):
        raise ConfigError(f"network {name} made {network!r}: it must make an nn.Module")
    kinds = {parameter.dtype for parameter in network.parameters()}
    if kinds != {torch.float32}:
        found = ", ".join(sorted(str(kind) for kind in kinds)) or "no parameters"
        raise ConfigError(f"network {name} has {found}: all of its parameters must be torch.float32")
    observation = torch.zeros((2, *spec.observation_shape), dtype=_torch_dtype(spec))
    try:
        with torch.no_grad():
            shape = tuple(network.eval()(observation).shape)
    except Exception as error:  # whatever a user's module raises
        raise ConfigError(
            f"network {name} fails on observations of shape {tuple(observation.shape)} and {observation.dtype}: {error}"
        ) from error
    if shape != (2, spec.num_actions):
        raise ConfigError(
            f"network {name} returns shape {shape} for 2 observations: it must be (2, {spec.num_actions})"
        )
    return network


def _try_out(learner: Learner, spec: EnvSpec) -> None:
    """What is wrong with an algorithm of the user's is said now, and not after the warm-up."""
    name = learner.config.algorithm
    device = learner.theta.device
    observation = torch.zeros((2, *spec.observation_shape), dtype=_torch_dtype(spec), device=device)
    numbers = torch.zeros(2, device=device)
    batch = TensorBatch(observation, numbers.long(), numbers, observation, numbers.bool(), numbers + 1)
    gamma, learner.gamma = learner.gamma, learner.gamma or 0.99
    try:
        with torch.no_grad():
            shape = tuple(learner.q_values(observation).shape)
            assessment = learner.assess(batch)
    except CdqnError:
        raise
    except Exception as error:  # whatever a user's class raises
        hint = "; without a network named q it needs a method q_values" if "q" not in learner.networks else ""
        raise ConfigError(f"{name} fails on a batch of two: {type(error).__name__}: {error}{hint}") from error
    finally:
        learner.gamma = gamma
    if shape != (wanted := (2, spec.num_actions)):
        raise ConfigError(f"{name}.q_values returns shape {shape} for 2 observations: it must be {wanted}")
    _check_assessment(f"{name}.assess", assessment)


def _check_assessment(source: str, assessment: Assessment) -> None:
    for field in ("loss", "td_error_abs"):
        shape = tuple(getattr(assessment, field).shape)
        if shape != (2,):
            raise ConfigError(f"{source} returns {field} of shape {shape} for 2 samples: it must be (2,)")
    for name in ("loss", "q_mean"):
        if name not in assessment.statistics:
            raise ConfigError(f"{source} leaves {name} out of its statistics: every run logs it")
    for name, value in assessment.statistics.items():
        if value.shape != ():
            raise ConfigError(f"{source} returns the statistic {name} of shape {tuple(value.shape)}: take its mean")


def _torch_dtype(spec: EnvSpec) -> torch.dtype:
    return torch.from_numpy(np.zeros(0, dtype=spec.observation_dtype)).dtype


def choose_device(wanted: str, large_network: bool) -> torch.device:
    """The device that a configuration asks for, or an error that says what is missing."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return torch.device("cuda" if count and large_network else "cpu")
    device = torch.device(wanted)
    if device.type == "cuda" and not count:
        raise ConfigError(f"device is {wanted!r}, but PyTorch finds no GPU: use cpu, or install PyTorch for CUDA")
    if device.type == "cuda" and (device.index or 0) >= count:
        names = ", ".join(f"cuda:{index}" for index in range(count))
        raise ConfigError(f"device is {wanted!r}, but PyTorch finds {names}: use one of them, or cpu")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("device is 'mps', but PyTorch finds no GPU of Apple's: use cpu, or install PyTorch for macOS")
    return device


def require_acting(given: Collection[str], spec: EnvSpec, config: Config) -> None:
    """Refuse settings that the user has given and that cannot act; presets may hold them all the same."""
    if config.network is not None and (idle := [name for name in OF_OUR_NETWORKS if name in given]):
        raise ConfigError(f"{', '.join(idle)}: of the built-in networks, and network is {config.network}: drop one")
    if "channels" in given and config.channels is not None and not spec.has_frames:
        raise ConfigError(f"channels is for images, this environment has {spec.kind} observations: drop it, use hidden")


OF_OUR_NETWORKS = ("hidden", "channels", "dueling", "initial_weights")
"""Settings that a network of the user's does not hear of."""


def make_replay(spec: EnvSpec, config: Config, rng: np.random.Generator) -> Replay:
    """The memory a (resolved) configuration asks for, if there is room for it."""
    if is_code_name(config.replay):
        own: Replay = named("replay", config.replay)(spec, config, rng)
        return own
    store = _make_store(spec, config)
    common: dict[str, Any] = {
        "rng": rng,
        "eviction": config.eviction,
        "discard_fraction": config.discard_fraction,
    }
    if config.replay == "uniform":
        return UniformReplay(store, **common)
    # A setting that cannot act is None in a resolved configuration, and then the default is as good as any.
    priorities = {
        "alpha": config.alpha,
        "priority_epsilon": config.priority_epsilon,
        "floor_divisor": config.floor_divisor,
        "initial_priority": config.initial_priority,
        "raise_predecessor": config.raise_predecessor,
        "scheme": config.priority_scheme,
    }
    given: dict[str, Any] = {name: value for name, value in priorities.items() if value is not None}
    return PrioritizedReplay(store, **common, **given)


def rows_at_end(config: Config) -> int:
    """Transitions in the replay memory when the budget is spent."""
    return min(config.memory_size, round(config.steps * (1 - config.discard_fraction)))


def memory_estimate(spec: EnvSpec, config: Config, rows: int | None = None) -> int:
    """Bytes of a replay memory of `rows` transitions, by default those at the end; as far as can be told beforehand."""
    rows = rows_at_end(config) if rows is None else rows
    if spec.has_frames:
        from cdqn.replay.frames import estimated_bytes

        new_frames = 1 if spec.kind == "atari" else spec.observation_shape[0]
        return estimated_bytes(rows, spec.observation_shape, config.eviction, new_frames)
    return rows * ArrayStore(1, spec.observation_shape, spec.observation_dtype).nbytes


def readable_bytes(count: int) -> str:
    """As people write it: 1.1 GB, 47 MB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _make_store(spec: EnvSpec, config: Config) -> Store:
    needed, available = memory_estimate(spec, config), psutil.virtual_memory().available
    if needed > available:
        raise ConfigError(
            f"a replay memory of {rows_at_end(config):,} observations of shape {spec.observation_shape} needs about "
            f"{readable_bytes(needed)}, and {readable_bytes(available)} of memory are available: lower memory_size "
            f"(now {config.memory_size:,})"
        )
    if spec.has_frames:
        from cdqn.replay.frames import FrameStore  # needs an optional package

        return FrameStore(config.memory_size, spec.observation_shape, config.eviction, config.n_step)
    return ArrayStore(config.memory_size, spec.observation_shape, spec.observation_dtype)
