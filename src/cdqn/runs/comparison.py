"""Several algorithms and seeds on one environment, in parallel processes, in one folder.

    DIR/comparison.json     which runs it is made of
        cdqn-seed0/ …       the runs, each a run folder of its own

`cdqn.runs.run_pool.run_all` trains what `planned_runs` gives, and after a crash what is left of it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.runs.folders import new_folder
from cdqn.runs.loading import require_import_allowed
from cdqn.runs.run_pool import PlannedRun
from cdqn.storage.files import read_json, require_no_links, write_json, writing
from cdqn.storage.named_code import import_allowed


def create_comparison(folder: Path, env_id: str, configs: Sequence[Config], preset: str | None = None) -> None:
    """A new folder, and in it the list of runs."""
    Agent.from_config(env_id, configs[0], preset)  # what cannot work is said now, and not by every process
    content = {"env_id": env_id, "runs": {run_name(config): config.to_json() for config in configs}}
    with new_folder(folder), writing(folder):
        write_json(folder / "comparison.json", content)


def is_comparison(folder: Path) -> bool:
    return (folder / "comparison.json").exists()


def run_name(config: Config) -> str:
    return f"{config.algorithm.replace(':', '-')}-seed{config.seed}"


def planned_runs(folder: Path, allow_import: Iterable[str] = ()) -> dict[str, PlannedRun]:
    """The runs of a comparison, by name. `allow_import`: as in `cdqn.load`."""
    require_no_links(folder)
    path = folder / "comparison.json"
    content = read_json(path, "a comparison")
    try:
        env_id = content["env_id"]
        for settings in content["runs"].values():
            import_allowed(folder, settings, allow_import)
        configs = {name: Config.from_json(values, str(path)) for name, values in content["runs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: {error!r}") from error
    require_import_allowed(folder, env_id, allow_import)
    return {name: PlannedRun(env_id, config) for name, config in configs.items()}
