"""Code of the user's in the command line: typed it is imported, in a folder it is not."""

import sys

import pytest

from cdqn.cli.main import main
from cdqn.storage import named_code

QUICK = ["--steps", "600", "--warmup-steps", "100", "--log-period-steps", "100", "--checkpoint-period-steps", "300"]
QUICK += ["--evaluation-episodes", "2", "--compile", "off", "--hidden", "8"]
MODULE = '''
from torch import nn
from cdqn.algorithms import CDQN

class Mine(CDQN):
    """C-DQN under another name."""
    name, label, colour = "mine", "Mine", "#CC79A7"

def network(spec):
    return nn.Linear(spec.observation_shape[0], spec.num_actions)

Nothing = 3
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a user's module, in a process that has not seen it yet."""
    (tmp_path / "users_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(named_code, "_objects", {})
    monkeypatch.delitem(sys.modules, "users_module", raising=False)
    return tmp_path


def forget(monkeypatch):
    monkeypatch.setattr(named_code, "_objects", {})


def test_own_algorithm_is_trained_and_its_folder_names_what_it_needs(here, monkeypatch, capsys):
    assert main(["train", "CartPole-v1", "--algorithm", "users_module:Mine", *QUICK]) == 0
    run = "runs/CartPole-v1-users_module-Mine-seed0"
    assert (here / run / "learning_curve.png").exists()
    forget(monkeypatch)
    capsys.readouterr()
    assert main(["evaluate", run, "--episodes", "2"]) == 1
    assert "--allow-import users_module" in capsys.readouterr().err
    assert main(["evaluate", run, "--episodes", "2", "--allow-import", "users_module"]) == 0
    assert "Mine after 600 steps" in capsys.readouterr().out
    forget(monkeypatch)
    assert main(["resume", run, "--steps", "700"]) == 1
    assert main(["resume", run, "--steps", "700", "--allow-import", "users_module"]) == 0


def test_own_network_is_trained(here, capsys):
    own = ["train", "CartPole-v1", "--network", "users_module:network", "--out", "run"]
    assert main([*own, *QUICK]) == 1
    assert "hidden: of the built-in networks" in capsys.readouterr().err
    assert main([*own, *QUICK[:-2]]) == 0
    assert "DQN branch" in capsys.readouterr().out


def test_own_algorithm_is_compared_with_ours(here, monkeypatch, capsys):
    arguments = ["compare", "CartPole-v1", "--algorithms", "users_module:Mine,cdqn", "--seeds", "1", "--jobs", "1"]
    assert main([*arguments, "--out", "both", *QUICK]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    mine, ours = (next(row for row in rows if row[:1] == [name]) for name in ("Mine", "C-DQN"))
    assert mine[1:] == ours[1:], "the same algorithm under two names"
    forget(monkeypatch)
    assert main(["resume", "both"]) == 1
    assert "users_module" in capsys.readouterr().err


def test_own_algorithm_takes_part_in_the_suite(here, monkeypatch, capsys):
    arguments = ["suite", "--scale", "smoke", "--tasks", "CliffWalking", "--seeds", "1", "--jobs", "1"]
    arguments += ["--out", "suite"]
    assert main([*arguments, "--algorithms", "users_module:Mine,cdqn"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    ours = next(row for row in rows if row[:2] == ["CliffWalking", "C-DQN"])
    mine = next(row for row in rows if row[:1] == ["Mine"])
    assert mine[1:] == ours[2:], "the same algorithm under two names"
    assert (here / "suite" / "CliffWalking" / "users_module-Mine-seed0").is_dir()
    forget(monkeypatch)
    assert main(["resume", "suite"]) == 1
    assert "--allow-import users_module" in capsys.readouterr().err
    assert main(["resume", "suite", "--allow-import", "users_module"]) == 0
    assert main([*arguments, "--algorithms", "users_module:Nothing"]) == 1
    assert "a class derived from cdqn.algorithms.Algorithm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "value", "sentence"),
    [
        ("--algorithm", "ddqn", "choose from cdqn, dqn, rg, dcdqn, or name your own as module:Class"),
        ("--algorithm", "no_such_module:Mine", "no module 'no_such_module' can be imported"),
        ("--algorithm", "users_module:Missing", "module 'users_module' has no 'Missing'"),
        ("--algorithm", "users_module:Nothing", "a class derived from cdqn.algorithms.Algorithm"),
        ("--network", "mlp", "it must be module:Name"),
        ("--replay", "unifrom", "one of prioritized, uniform, or your own as module:Name"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(here, capsys, flag, value, sentence):
    assert main(["train", "CartPole-v1", flag, value, *QUICK]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert sentence in error
    assert "Traceback" not in error
    assert not (here / "runs").exists()
