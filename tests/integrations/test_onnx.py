"""ONNX: what onnxruntime computes from an exported policy is the Q of the agent."""

import re
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cdqn
from cdqn.errors import MissingPackageError
from helpers import TINY, small_agent


class Shown(gym.Env):
    action_space = Discrete(3)

    def __init__(self, space):
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 50.0 * float(action), True, False, {}


SPACES = {
    "board": (Box(0, 9, (5, 5, 2), np.uint8), {"value_transform": True}),
    "image": (Box(0, 255, (40, 36, 3), np.uint8), {"channels": (2, 2, 2), "memory_size": 500}),
}


def runtime():
    """onnxruntime, where everything is there for it."""
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.mark.parametrize("kind", SPACES)
def test_exported_policy_gives_the_q_of_the_agent_for_batches_of_any_size(kind, tmp_path):
    onnxruntime = runtime()
    space, settings = SPACES[kind]
    agent = cdqn.CDQN(Shown(space), **(TINY | settings)).learn(60)
    path = agent.export(tmp_path / "policy.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["policy.onnx"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == ["observation"]
    assert [node.name for node in session.get_outputs()] == ["q_values"]
    for count in (1, 7):
        x = np.stack([space.sample() for _ in range(count)])
        (q_NA,) = session.run(None, {"observation": x})
        assert q_NA == pytest.approx(agent.q_values(x), rel=1e-4, abs=1e-4)
        assert np.array_equal(q_NA.argmax(1), agent.predict(x))


def test_example_of_the_page_works(tmp_path, monkeypatch):
    runtime()
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "onnxruntime" in code]
    names: dict = {}
    exec(example.replace("20_000", "1_100"), names)
    assert names["q"][0] == pytest.approx(names["agent"].q_values(np.array([-0.5, 0.0])), rel=1e-4)
    assert names["action"].item() == names["agent"].predict(np.array([-0.5, 0.0]))


def test_missing_package_is_named_with_the_line_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[export\]'"):
        small_agent().export(tmp_path / "a.onnx")
