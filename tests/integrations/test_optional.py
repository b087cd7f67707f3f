"""A package that is not installed is an error with the line that installs it."""

import sys

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations import optional


def register(env_id):
    optional.register_known(env_id, optional.known_package(env_id))


@pytest.mark.parametrize(
    ("module", "load", "extra"),
    [
        ("ale_py.roms", optional.ale_roms, "atari"),
        ("ale_py.vector_env", optional.ale_vector_env, "atari"),
        ("minatar.gym", lambda: register("MinAtar/Breakout-v1"), "minatar"),
        ("zstandard", optional.zstandard_module, "atari"),
    ],
)
def test_missing_package_is_named_with_its_extra(module, load, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=rf"pip install 'cdqn\[{extra}\]'"):
        load()


@pytest.mark.parametrize(
    ("env_id", "package"),
    [
        ("MiniGrid-Empty-5x5-v0", "minigrid"),
        ("minigrid:MiniGrid-Empty-5x5-v0", "minigrid"),
        ("BabyAI-GoToObj-v0", "minigrid"),
        ("highway-fast-v0", "highway-env"),
        ("roundabout", "highway-env"),
        ("highway_env:intersection-multi-agent-v1", "highway-env"),
        ("MinAtar/Asterix-v1", "MinAtar"),
        ("other:MiniGrid-Empty-5x5-v0", None),
        ("minigrid:register_minigrid_envs", None),
        ("minigrid:highway-v0", None),
        ("CartPole-v1", None),
        ("my-highway-v0", None),
    ],
)
def test_id_tells_whose_environment_it_is(env_id, package):
    found = optional.known_package(env_id)
    assert (found and found.distribution) == package


def test_file_of_the_name_of_a_known_package_is_not_imported_in_its_place(tmp_path, monkeypatch):
    """A run folder names MiniGrid, minigrid is not installed, and a minigrid.py lies beside the folder."""
    (tmp_path / "minigrid.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "minigrid", raising=False)
    monkeypatch.setitem(
        optional.KNOWN_PACKAGES, "minigrid", optional.KNOWN_PACKAGES["minigrid"]._replace(distribution="not-installed")
    )
    with pytest.raises(MissingPackageError, match="MiniGrid-X-v0 needs not-installed: pip install minigrid"):
        register("MiniGrid-X-v0")
