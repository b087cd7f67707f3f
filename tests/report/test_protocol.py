"""Table 1, from the results of runs."""

from pathlib import Path

import numpy as np
import pytest

from cdqn.errors import CheckpointError, ConfigError
from cdqn.report.protocol import table1
from cdqn.storage.files import write_json


def write_result(folder: Path, env_id: str, algorithm: str, seed: int, mean: float) -> Path:
    folder.mkdir()
    content = {"env_id": env_id, "algorithm": algorithm, "seed": seed, "test": {"mean": mean}}
    write_json(folder / "protocol.json", content)
    return folder


def test_table1_is_mean_and_standard_error_over_runs(tmp_path):
    scores = {("Skiing", "cdqn"): [-3500.0, -3700.0, -3900.0], ("Skiing", "dqn"): [-29751.0]}
    folders = [
        write_result(tmp_path / f"{env}-{algorithm}-{seed}", env, algorithm, seed, mean)
        for (env, algorithm), means in scores.items()
        for seed, mean in enumerate(means)
    ]
    cdqn, dqn = table1(folders)
    assert (cdqn.env_id, cdqn.algorithm, cdqn.runs, cdqn.mean) == ("Skiing", "cdqn", 3, -3700.0)
    assert cdqn.stderr == pytest.approx(200 / np.sqrt(3))
    assert (dqn.algorithm, dqn.runs, dqn.mean, dqn.stderr) == ("dqn", 1, -29751.0, None)


def test_table1_counts_a_seed_once_and_names_what_is_missing(tmp_path):
    one = write_result(tmp_path / "a", "Skiing", "cdqn", 0, 1.0)
    two = write_result(tmp_path / "b", "Skiing", "cdqn", 0, 2.0)
    with pytest.raises(ConfigError, match="a seed counts once"):
        table1([one, two])
    (tmp_path / "c").mkdir()
    with pytest.raises(CheckpointError, match=r"c/protocol\.json does not exist"):
        table1([one, tmp_path / "c"])
    write_json(tmp_path / "c" / "protocol.json", {"env_id": "Skiing"})
    with pytest.raises(CheckpointError, match="damaged"):
        table1([tmp_path / "c"])
