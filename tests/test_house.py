"""Rules of the house: sizes of folders, files and functions, and a test file for each module."""

import ast
import re
from pathlib import Path

import cdqn

ROOT = Path(cdqn.__file__).parent
TESTS = Path(__file__).parent
MODULES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

MOST_FILES, MOST_FOLDERS, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 12, 12, 350, 45

WITHOUT_TESTS = ("__init__.py", "__main__.py", "errors.py")


def functions_of(name):
    return [n for n in ast.walk(TREES[name]) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_root_is_small_enough_to_be_read_at_a_glance():
    files = [path.name for path in ROOT.glob("*.py")]
    folders = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(files) <= MOST_FILES, sorted(files)
    assert len(folders) <= MOST_FOLDERS, sorted(folders)


def test_no_file_is_long():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    assert [(name, n) for name, n in lengths.items() if n > MOST_LINES] == []


def test_no_function_is_long():
    found = []
    for name in MODULES:
        for function in functions_of(name):
            lines = function.end_lineno - function.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                found.append((name, function.name, lines))
    assert found == []


def test_every_module_has_a_test_file_of_its_name():
    paths = [Path(name) for name in MODULES]
    expected = [path.parent / f"test_{path.name}" for path in paths if path.name not in WITHOUT_TESTS]
    assert [str(path) for path in expected if not (TESTS / path).exists()] == []


def test_files_that_the_pages_name_exist():
    root = TESTS.parent
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    missing = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`((?:tests|src|docs|benchmarks|examples)/[\w/.-]*)`", text)
        missing += [(page.name, name) for name in named if not (root / name).exists()]
    assert missing == []
