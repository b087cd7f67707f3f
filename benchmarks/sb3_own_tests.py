"""Stable-Baselines3's own tests of its DQN, with our class in the place of theirs.

    python benchmarks/sb3_own_tests.py                  # fetches the source distribution of the version installed
    python benchmarks/sb3_own_tests.py --source DIR     # or takes one that is unpacked

The tests are the host's, and are not part of this project; those of other algorithms are left out.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

SWAP = """
import stable_baselines3
import stable_baselines3.dqn
from cdqn.integrations.sb3 import CDQN

stable_baselines3.DQN = stable_baselines3.dqn.DQN = CDQN
"""


def fetch(folder: Path) -> Path:
    """The source distribution, unpacked."""
    name = f"stable-baselines3=={version('stable-baselines3')}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    subprocess.run([*command, "--dest", str(folder), name], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path)
    options, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        source = (options.source or fetch(Path(folder))).resolve()
        (Path(folder) / "swap_dqn.py").write_text(SWAP)
        files = [str(path) for path in sorted((source / "tests").glob("test_*.py")) if "DQN" in path.read_text()]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-m", "pytest", "-p", "swap_dqn", "-q", "-k", "DQN or dqn", "-c", os.devnull]
        # Where the tests are, and not the package beside them: the one that is tested is the one installed.
        return subprocess.run([*command, *more, *files], cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
