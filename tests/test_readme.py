"""What the README and the examples show works as it stands there."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parent.parent


def test_python_lines_of_the_readme_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quickstart, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert quickstart.count("50_000") == 2
    names: dict = {}
    exec(quickstart.replace("50_000", "1_200"), names)
    assert names["agent"].steps == 2_400
    assert names["action"] in (0, 1)
    assert (tmp_path / "runs" / "a" / "config.json").exists()


def test_loss_example_of_the_readme_gives_a_gradient():
    _, pieces, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    generator = torch.Generator().manual_seed(0)
    names: dict = {
        "q_B": torch.zeros(4, requires_grad=True),
        "reward_B": torch.ones(4),
        "terminated_B": torch.tensor([False, False, True, False]),
        "weight_B": torch.tensor([1.0, 2.0, 1.0, 1.0]),
        "next_q_target_BA": torch.rand(4, 3, generator=generator),
        "next_q_online_BA": torch.rand(4, 3, generator=generator, requires_grad=True),
    }
    exec(pieces, names)
    assert (names["q_B"].grad < 0).all(), "all targets are above 0"
    assert names["terms"].td_error_abs.shape == (4,)


def test_links_of_the_documents_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\((?!https?:)([^)]+)\)", prose):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {link}"


def anchors(page):
    """Those of the headings, as Git forges make them."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def run_example(name, **arguments):
    """`main` of an example, imported as a user's module is: classes are found again by their names."""
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(f"examples.{name}").main(**arguments)
    finally:
        sys.path.remove(str(ROOT))


def test_example_of_an_own_environment_learns_to_walk():
    np.testing.assert_array_equal(run_example("own_environment", steps=3_000).returns, np.ones(10))


@pytest.mark.parametrize("name", ["own_network", "own_algorithm", "dict_observation"])
def test_example_runs(name):
    result = run_example(name, steps=1_500)
    assert len(result.returns) == 10


def test_example_of_early_stopping_stops_and_keeps_the_best():
    steps, longest, best = run_example("early_stopping", steps=2_000)
    assert steps == 2_000, "CartPole is not solved so soon"
    assert longest > 10
    assert best > 5


def test_example_of_a_sweep_has_a_value_for_each_trial(tmp_path):
    trials = run_example("sweep", trials=2, steps=1_100, seeds=1, jobs=1, folder=tmp_path / "sweep")
    assert len(trials) == 2
    assert min(trial.value for trial in trials) > 5
    assert list(trials[1].settings) == ["learning_rate", "n_step", "hidden"]


@pytest.mark.parametrize("name", ["host_sb3", "host_torchrl"])
def test_example_of_another_library_runs(name):
    assert run_example(name, steps=600) >= 8


def test_example_of_rllib_runs_in_one_process(small_ray):
    assert run_example("host_rllib", steps=1_000, env_runners=0) > 8


def test_examples_are_short_and_all_of_them_are_tested():
    examples = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")}
    here = Path(__file__).read_text(encoding="utf-8")
    assert len(examples) >= 5
    for name, text in examples.items():
        assert len(text.splitlines()) <= 50, name
        assert f'"{name}"' in here, f"{name} is not run here"
