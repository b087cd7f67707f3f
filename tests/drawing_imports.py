"""What a module that makes tables and pictures may import."""

import ast
import sys
from pathlib import Path

_TASKS = {"cdqn.tabular", "cdqn.tasks"}
_ALLOWED = {
    "numpy",
    "rich",
    "matplotlib",
    "cdqn.errors",
    "cdqn.algorithms",
    "cdqn.storage.files",
    "cdqn.storage.named_code",
    "cdqn.report",
    *_TASKS,
    *sys.stdlib_module_names,
}


def assert_draws_only(source: Path) -> None:
    """It needs numpy, rich and matplotlib; of this library errors, files, names and the tasks it draws."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            depth = 2 if name.startswith("cdqn") else 1
            assert name in _ALLOWED or ".".join(name.split(".")[:depth]) in _ALLOWED, f"{source.name} imports {name}"
            assert name != "matplotlib.pyplot", source.name
