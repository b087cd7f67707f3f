"""What the README and the examples show works as it stands there."""

import re
import runpy
from pathlib import Path

import numpy as np
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
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_example_of_an_own_environment_learns_to_walk():
    example = runpy.run_path(str(ROOT / "examples" / "own_environment.py"))
    result = example["main"](steps=3_000)
    np.testing.assert_array_equal(result.returns, np.ones(10))
