"""Minari's data sets, as they lie on this machine; nothing is downloaded, and no code that one names is imported."""

from typing import Any, NamedTuple

from cdqn.errors import ConfigError
from cdqn.integrations.optional import missing


class MinariData(NamedTuple):
    """A data set in plain values. An episode of T steps has T + 1 observations."""

    name: str
    observation_space: Any
    action_space: Any
    episodes: list[Any]
    """Each has observations, actions, rewards, terminations and truncations."""
    env_spec: Any
    """Of the environment that it was recorded in, as Gymnasium describes it; None: unknown."""


def is_minari(data: Any) -> bool:
    """Whether an object is a data set of Minari's, to judge by what it can do."""
    return hasattr(data, "iterate_episodes") and hasattr(data, "observation_space")


def read_minari(data: Any) -> MinariData:
    """A data set by its name, or as Minari has loaded it."""
    try:
        import minari
    except ImportError as error:
        raise missing(f"{data} is no file: as the name of a data set of Minari's it needs minari", "minari") from error
    try:
        found = data if is_minari(data) else minari.load_dataset(data)
        episodes = list(found.iterate_episodes())
    except FileNotFoundError as error:
        local = ", ".join(minari.list_local_datasets()) or "none"
        raise ConfigError(
            f"there is no data set {data!r}: it is neither a file (.npz), nor the folder of a run, nor among Minari's "
            f"data sets on this machine ({local}); `minari download {data}` fetches one"
        ) from error
    except (ImportError, ValueError, KeyError, OSError, AssertionError) as error:
        raise ConfigError(
            f"Minari cannot read the data set {data!r}: {error!r}; is it damaged? Download or record it again"
        ) from error
    if not episodes:
        raise ConfigError(f"the data set {data!r} is empty: it has 0 episodes; record some first")
    spec = getattr(found, "env_spec", None)
    return MinariData(str(found.spec.dataset_id), found.observation_space, found.action_space, episodes, spec)
