"""How a Ray cluster is found."""

import socket
import subprocess
import sys

import pytest

from cdqn.errors import ConfigError, MissingPackageError
from cdqn.integrations import ray


def test_address_that_is_none_and_one_where_nobody_answers_are_refused():
    with pytest.raises(ConfigError, match="'nonsense' is not the address of a Ray cluster: give host:port"):
        ray.connect("nonsense")
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for given in (address, f"ray://{address}"):
            with pytest.raises(ConfigError, match=f"no Ray cluster answers at {given} "):
                ray.connect(given)


def test_cluster_that_nobody_has_started_is_not_found(tmp_path):
    """In a process of its own: another test may have a cluster."""
    command = [sys.executable, "-m", "cdqn", "compare", "CartPole-v1", "--on", "ray", "--out", str(tmp_path / "a")]
    environment = {"PATH": "/usr/bin:/bin", "RAY_ADDRESS": "", "RAY_TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr.startswith("cdqn: no Ray cluster was found: start one with `ray start --head`")
    assert not (tmp_path / "a").exists()


def test_without_ray_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cdqn\[ray\]'"):
        ray.connect()
