"""Files are written whole or not at all, and errors name them."""

import pytest

from cdqn.errors import CheckpointError
from cdqn.storage.files import read_json, write_json


def test_json_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "config.json"
    write_json(path, {"old": 1})
    with pytest.raises(TypeError):
        write_json(path, {"new": object()})
    assert read_json(path, "a file") == {"old": 1}


def test_json_errors_name_the_file(tmp_path):
    with pytest.raises(CheckpointError, match=r"missing\.json does not exist"):
        read_json(tmp_path / "missing.json", "a run folder")
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(CheckpointError, match=r"bad\.json cannot be read"):
        read_json(tmp_path / "bad.json", "a run folder")
