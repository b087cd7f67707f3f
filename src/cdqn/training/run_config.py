"""RUN/config.json: the environment and every setting of a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.storage.files import VERSION, read_json, require_no_links, write_json
from cdqn.storage.named_code import import_allowed


class Configured(Protocol):
    """What there is to write of an agent."""

    env_id: str | None
    config: Config
    data: str | None
    """The fixed data that it learns from, if it does."""


def write_run_config(run: Path, agent: Configured) -> None:
    """Make the folder, and write which run it is of."""
    run.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"cdqn": VERSION, "config": {"env_id": agent.env_id, **agent.config.to_json()}}
    if agent.data is not None:
        content["data"] = agent.data
    write_json(run / "config.json", content)


def read_run_config(run: Path, allow_import: str | Iterable[str] = ()) -> tuple[str | None, Config]:
    """The environment's id and the settings of a run folder. What they name is imported only if it is allowed."""
    require_no_links(run)
    path = run / "config.json"
    content = read_json(path, "a run folder")
    try:
        settings = dict(content["config"])
        env_id = settings.pop("env_id")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is not the configuration of a cdqn run") from error
    if not (env_id is None or isinstance(env_id, str)):
        raise CheckpointError(f"{path} is damaged: env_id is {env_id!r}, not the name of an environment")
    import_allowed(run, settings, allow_import)
    return env_id, Config.from_json(settings, str(path))


def read_data_name(run: Path) -> str | None:
    """Where the data of a run was from, if it learns from fixed data alone; None for one that plays."""
    path = run / "config.json"
    content = read_json(path, "a run folder")
    name = content.get("data") if isinstance(content, dict) else content
    if not (name is None or isinstance(name, str)):
        raise CheckpointError(f"{path} is damaged: data is {name!r}, not the name of a data set")
    return name
