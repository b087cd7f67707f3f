"""How a Ray cluster is found."""

import importlib
import socket
import sys
from types import ModuleType

import pytest

from cdqn.cli.main import main
from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations import ray


def test_address_that_is_none_and_one_where_nobody_answers_are_refused():
    importlib.import_module("ray").shutdown()  # if another test has left one
    with pytest.raises(ConfigError, match="'nonsense' is not the address of a Ray cluster: give host:port"):
        ray.connect("nonsense")
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for given in (address, f"ray://{address}"):
            with pytest.raises(ConfigError, match=f"no Ray cluster answers at {given} "):
                ray.connect(given)


class NoCluster(ModuleType):
    """Ray on a machine where nobody has started a cluster; another test may have, on this one."""

    def is_initialized(self):
        return False

    def init(self, address, **options):
        raise ConnectionError(f"Could not find any running Ray instance ({address})")


def test_cluster_that_nobody_has_started_is_not_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", NoCluster("ray"))
    assert main(["compare", "CartPole-v1", "--on", "ray", "--out", str(tmp_path / "a")]) == 1
    assert "no Ray cluster was found: start one with `ray start --head`" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_without_ray_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[ray\]'"):
        ray.connect()
