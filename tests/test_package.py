"""What would go to PyPI: a source archive and a wheel that work where there is no checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import yaml

import cdqn

ROOT = Path(__file__).parent.parent
IN_THE_ARCHIVE = ("benchmarks", "docs", "examples", "src", "tests")
LARGEST_FILE, LARGEST_ARCHIVE = 300_000, 2_000_000

COMMANDS = """
import functools
import yaml

import cdqn
from cdqn.cli.main import main
from cdqn.experiments.demo import runs

print(cdqn.__file__)
short = runs.DemoSetting(transitions=200, updates=40, record_every=20, evaluate_every=40, evaluation_episodes=2)
runs.run_demo = functools.partial(runs.run_demo, setting=short)  # the command has no shorter form
assert main(["list"]) == main(["demo", "--seeds", "1", "--jobs", "1", "--out", "demo"]) == 0
"""


def test_archives_can_be_built_and_the_wheel_works_by_itself(tmp_path):
    build(tmp_path)
    (archive,), (wheel,) = tmp_path.glob("dist/*.tar.gz"), tmp_path.glob("dist/*.whl")
    check_archive(archive)
    check_wheel(wheel)

    python(tmp_path, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", "installed", str(wheel))
    assert python(tmp_path, "installed/bin/cdqn", "--version") == cdqn.__version__
    where, *printed = python(tmp_path, "-c", COMMANDS).splitlines()
    assert where == str(tmp_path / "installed" / "cdqn" / "__init__.py"), "not the checkout"
    assert any("diverged" in line for line in printed)
    assert {path.suffix for path in (tmp_path / "demo").iterdir()} >= {".png", ".csv"}


def build(folder):
    """The archive from a copy of the project, the wheel from the archive, as `python -m build` does it."""
    source = folder / "source"
    for name in IN_THE_ARCHIVE:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, source)
    python(folder, "-m", "build", "--no-isolation", "--outdir", "dist", "source")


def python(folder, *arguments):
    """What Python prints when it is run there, without the checkout on its path."""
    environment = os.environ | {"PYTHONPATH": str(folder / "installed"), "COLUMNS": "200"}
    environment["NUMBA_DISABLE_JIT"] = "1"  # a new folder has no cache of compiled loops, and few rows to loop over
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def check_archive(path):
    with tarfile.open(path) as archive:
        sizes = {member.name.partition("/")[2]: member.size for member in archive if member.isfile()}
    wanted = {"pyproject.toml", "LICENSE", "README.md", "docs/index.md", "docs/figures/demo.png", "tests/conftest.py"}
    assert wanted <= sizes.keys()
    assert sum(name.startswith("tests/") for name in sizes) == sum(1 for _ in (ROOT / "tests").rglob("*.py"))
    assert {name: size for name, size in sizes.items() if size > LARGEST_FILE} == {}
    assert path.stat().st_size < LARGEST_ARCHIVE
    assert [name for name in sizes if "__pycache__" in name or name.startswith("runs/")] == []


def check_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(about).decode())
    source = ROOT / "src"
    kept = [path for pattern in ("*.py", "*.csv", "py.typed", "*.txt") for path in (source / "cdqn").rglob(pattern)]
    assert {path.relative_to(source).as_posix() for path in kept} - names == set()
    assert {name.partition("/")[0] for name in names} == {"cdqn", about.partition("/")[0]}, "and nothing else"
    assert metadata["Version"] == cdqn.__version__
    assert metadata["License-Expression"] == "MIT"


def test_citation_names_the_paper_and_no_version_that_could_grow_old():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["authors"] == [{"name": "The cdqn developers"}]
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Wang", "Ueda"]
    assert paper["year"] == 2022
    assert "version" not in citation
