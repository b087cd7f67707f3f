"""A package that is not installed is an error with the line that installs it."""

import sys

import pytest

from cdqn.errors import MissingPackageError
from cdqn.integrations import optional


@pytest.mark.parametrize(
    ("module", "load", "extra"),
    [
        ("ale_py.roms", optional.ale_roms, "atari"),
        ("ale_py.vector_env", optional.ale_vector_env, "atari"),
        ("minatar.gym", lambda: optional.minatar_gym("MinAtar/Breakout-v1"), "minatar"),
        ("zstandard", optional.zstandard_module, "atari"),
    ],
)
def test_missing_package_is_named_with_its_extra(module, load, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=rf"pip install 'cdqn\[{extra}\]'"):
        load()
