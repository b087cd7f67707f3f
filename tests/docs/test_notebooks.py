"""The notebooks run from top to bottom, with smaller numbers in their cell of parameters."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent.parent / "docs" / "notebooks"
LARGEST_BYTES = 100_000

SMALLER = {
    "first_steps": "STEPS = 1_100\nSEED = 0\nEPISODES = 2",
    "watch_dqn_diverge": "STEPS = 2_000\nWARMUP_STEPS = 1_000\nSEED = 0",
}


def test_all_notebooks_are_run_here_and_none_is_large():
    paths = {path.stem: path for path in NOTEBOOKS.glob("*.ipynb")}
    assert paths.keys() == SMALLER.keys()
    for path in paths.values():
        assert path.stat().st_size < LARGEST_BYTES, f"{path.name}: clear its outputs"


@pytest.mark.parametrize("name", SMALLER)
def test_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    printed = run_notebook(name, tmp_path)
    if name == "first_steps":
        assert "1100 2100" in printed
    else:
        q = {label: float(value) for label, value in re.findall(r"^(\S+): Q (\S+),", printed, re.MULTILINE)}
        assert q["DQN"] > 150, "beyond the bound of 100 by half"
        assert q["C-DQN"] < 100
        assert re.search(r"^DQN: step \d+.*diverging", printed, re.MULTILINE)


def run_notebook(name, folder):
    """What it prints."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    shown = re.findall(r"^(\w+) =", parameters.source, re.MULTILINE)
    assert shown == re.findall(r"^(\w+) =", SMALLER[name], re.MULTILINE)
    parameters.source = SMALLER[name]
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    outputs = (output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream")
