"""Every Python block of the pages runs, in the order of the page, as one module of its own, with fewer steps."""

import dataclasses
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import cdqn

DOCS = Path(__file__).parent.parent.parent / "docs"

FEWER = {
    "index.md": {"learn(50_000)": "learn(1_100)"},
    "quickstart.md": {"learn(50_000)": "learn(1_100)"},
    "coming_from_sb3.md": {"learn(50_000)": "learn(1_100)"},
    "faq.md": {},
    "export.md": {"learn(50_000)": "learn(1_100)"},
    "offline.md": {"range(5_000)": "range(300)", "updates=10_000": "updates=40, log_period_steps=20"},
    "recipes.md": {
        "learn(20_000": "learn(1_100",
        "learn(50_000": "learn(1_100",
        "evaluation_period_steps=2_000": "evaluation_period_steps=1_000",
        "episodes=100": "episodes=5",
    },
    "hosts/stable_baselines3.md": {"learn(50_000)": "learn(300)"},
    "hosts/torchrl.md": {},
    "hosts/rllib.md": {
        "num_env_runners=2": "num_env_runners=0",
        "print(algorithm.train()": "found = (algorithm.train()",
    },
    "tutorials/own_environment.md": {"5_000": "1_500", "fields=10": "fields=5"},
    "tutorials/images.md": {"20_000": "2_020", "episodes=20": "episodes=2"},
    "tutorials/resuming.md": {
        "4_000": "1_200",
        "learn(2_500)": "learn(1_100)",
        "learn(1_500)": "learn(100)",
        "5_000": "1_200",
        "learn(3_000": "learn(1_100",
        "learn(2_000": "learn(100",
        "learn(1_000": "learn(100",
    },
}
"""What is written in a page, and what runs here in its place."""

FRAGMENTS = {
    "extending.md": """
import functools
import cdqn
from cdqn.replay import ArrayStore, UniformReplay
from gymnasium.wrappers import DiscretizeAction, RecordEpisodeStatistics as MyWrapper
agent = cdqn.CDQN("CartPole-v1")
""",
}
"""Pages whose blocks are parts of a program, and what they take for granted; whatever they learn is cut short."""
NOT_RUN = {"oscillator.md", "sweeping.md", "api/agents.md"}
"""An agent that takes an hour to train; what examples/sweep.py does; one line of the front page again."""
TINY = {"hidden": (8,), "warmup_steps": 50, "steps": 200, "batch_size": 8, "compile": "off"}


def blocks_of(page):
    """The Python of a page; what stands beside it for comparison is another library's."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python(?: title=\"(.*?)\")?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [code for title, code in blocks if title != "Stable-Baselines3"]


@pytest.fixture
def run_page(tmp_path, monkeypatch):
    """A page as a module in a folder of its own; returns its names."""

    def run(page):
        program = "\n".join([FRAGMENTS.get(page, ""), *blocks_of(page)])
        for shown, run_here in FEWER.get(page, {}).items():
            assert shown in program, f"{page} no longer has {shown}"
            program = program.replace(shown, run_here)
        if page in FRAGMENTS:
            program = re.sub(r"\b\d+_000\b", "1_100", program)
        name = "page_" + re.sub(r"\W", "_", page.removesuffix(".md"))
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return run


def test_front_page(run_page):
    names = run_page("index.md")
    assert names.agent.steps == 1_100


def test_quick_start(run_page):
    names = run_page("quickstart.md")
    assert len(names.result.returns) == 20
    assert names.action in (0, 1)
    assert names.agent.config.target_period_updates == 10


def test_the_program_beside_that_of_stable_baselines3(run_page):
    names = run_page("coming_from_sb3.md")
    assert names.agent.config.algorithm == "dqn"
    assert names.error >= 0


def test_the_program_of_stable_baselines3_is_one(tmp_path, monkeypatch):
    text = (DOCS / "coming_from_sb3.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python title=\"Stable-Baselines3\"\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(program.replace("learn(50_000)", "learn(300)"), names)
    assert names["mean"] > 5
    assert names["model"].num_timesteps == 300


def test_frequently_asked_questions(run_page):
    assert run_page("faq.md").torch.get_num_threads() == 1


def test_recipes_with_a_stand_in_for_weights_and_biases(run_page, monkeypatch, tmp_path):
    logged = []
    run = SimpleNamespace(config={}, log=lambda numbers, step: logged.append(step))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda project: run))
    names = run_page("recipes.md")
    assert logged
    assert list((tmp_path / "runs" / "board").glob("events.out.tfevents.*"))
    assert names.best.steps > 0
    assert names.q
    assert (names.q_B.grad < 0).all()
    assert names.agent.config.wrapper == ("page_recipes:Shorter",)


def test_learning_from_fixed_data(run_page, capsys, tmp_path):
    names = run_page("offline.md")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["CDQN", "DQN"]
    assert names.agent.data == "cartpole.npz"
    assert names.agent.steps == 40


def test_exported_policies_agree_with_the_agent(run_page):
    names = run_page("export.md")
    q_values = names.agent.q_values(names.observation)
    np.testing.assert_allclose(names.q_values[0], q_values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(names.script_q_values[0], q_values, rtol=1e-5, atol=1e-5)
    assert names.action == names.agent.predict(names.observation)


def test_tutorial_of_an_own_environment_always_arrives(run_page, capsys):
    names = run_page("tutorials/own_environment.md")
    assert "1 ± 0 " in capsys.readouterr().out
    assert names.agent.spec.num_actions == 5


def test_tutorial_of_images(run_page, capsys):
    names = run_page("tutorials/images.md")
    assert "image (1, 40, 40)" in capsys.readouterr().out
    assert names.agent.spec.observation_shape == (4, 40, 40)


def test_tutorial_of_resuming_ends_at_the_same_weights(run_page, capsys):
    names = run_page("tutorials/resuming.md")
    assert capsys.readouterr().out.startswith("True\n")
    assert names.agent.steps == 1_300


def test_algorithm_and_memory_of_the_guide_to_extending(run_page):
    names = run_page("extending.md")
    shown = cdqn.Agent("CartPole-v1", algorithm=names.DQN, target_period_updates=100, **TINY).learn(200)
    ours = cdqn.DQN("CartPole-v1", **TINY).learn(200)
    np.testing.assert_array_equal(shown.weights, ours.weights)
    recent = cdqn.CDQN("CartPole-v1", replay=names.Recent, **TINY).learn(200)
    assert len(recent.trainer.replay) > 100


def test_scripts_of_the_pages_on_other_libraries(run_page):
    assert run_page("hosts/stable_baselines3.md").model.num_timesteps == 300
    assert torch.isfinite(run_page("hosts/torchrl.md").found["loss"])


def test_script_of_the_page_on_rllib(run_page, small_ray):
    assert run_page("hosts/rllib.md").found > 5


def test_every_page_with_python_is_run_here_or_is_a_reference():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert {page for page in pages if blocks_of(page)} - {*FEWER, *FRAGMENTS, *NOT_RUN} == set()


@pytest.mark.parametrize("page", FEWER)
def test_no_recipe_is_long(page):
    lengths = [len([line for line in code.splitlines() if line.strip()]) for code in blocks_of(page)]
    assert max(lengths, default=0) <= 15


def test_settings_in_the_table_for_users_of_stable_baselines3_exist():
    text = (DOCS / "coming_from_sb3.md").read_text(encoding="utf-8")
    table = text.split("## Arguments of DQN")[1].split("\n\n")[1]
    ours = [re.findall(r"`(\w+)", line.split("|")[2]) for line in table.splitlines()[2:]]
    names = {name for row in ours for name in row}
    assert len(names) >= 15
    assert names <= {field.name for field in dataclasses.fields(cdqn.Config)}
