"""Code by its name: imported by the user's word alone."""

import sys

import pytest

from cdqn.errors import CheckpointError, ConfigError
from cdqn.storage import named_code
from cdqn.storage.named_code import (
    WithArguments,
    import_allowed,
    import_named,
    import_pieces,
    is_code_name,
    name_of,
    named,
)


class Thing:
    class Inner:
        pass


@pytest.mark.parametrize("name", ["module:Name", "package.module:Name", "a:B.c"])
def test_name_of_code(name):
    assert is_code_name(name)


@pytest.mark.parametrize(
    "name", ["cdqn", "epsilon-z", "", ":Name", "module:", "../module:Name", "a b:C", "CartPole-v1:x"]
)
def test_no_name_of_code(name):
    assert not is_code_name(name)


def test_object_is_known_by_its_name_from_then_on():
    name = name_of(Thing.Inner)
    assert name.endswith("test_named_code:Thing.Inner")
    assert named("network", name) is Thing.Inner


def test_module_of_the_current_folder_is_found_after_installed_ones(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("dumps = 'not the real one'")
    (tmp_path / "mine_alone.py").write_text("class Mine: pass")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    monkeypatch.setattr(named_code, "_objects", {})
    assert import_named("mine_alone:Mine").__name__ == "Mine"
    assert callable(import_named("json:dumps"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no_such_module:Name", "no module 'no_such_module' can be imported"),
        ("json:nothing", "'json' has no 'nothing'"),
    ],
)
def test_what_is_not_there_is_said(name, sentence):
    with pytest.raises(ConfigError, match=sentence):
        import_named(name)


def test_unknown_name_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="algorithm 'trap:Name' is code of module 'trap', which has not been"):
        named("algorithm", "trap:Name")
    with pytest.raises(CheckpointError, match="--allow-import trap"):
        import_allowed(tmp_path, {"network": "trap:Name"}, ["other"])
    assert "trap" not in sys.modules


def test_pieces_that_are_named_as_code_are_imported_and_others_are_not():
    import_pieces({"algorithm": "cdqn", "network": None, "replay": "uniform", "gamma": 0.9})
    with pytest.raises(ConfigError, match="no_such_module"):
        import_pieces({"network": "no_such_module:Net"})


@pytest.mark.parametrize(
    ("text", "args", "kwargs"),
    [
        ("m:W", (), {}),
        ("m:W()", (), {}),
        ("m:W(5)", (5,), {}),
        (
            "m:W( [1, 2.5], name='a (b)', deep={'x': (None, True)})",
            ([1, 2.5],),
            {"name": "a (b)", "deep": {"x": (None, True)}},
        ),
        ("m:W(-1)", (-1,), {}),
    ],
)
def test_arguments_are_read_and_written_again(text, args, kwargs):
    call = WithArguments.read(text)
    assert (call.name, call.args, call.kwargs) == ("m:W", args, kwargs)
    assert WithArguments.read(str(call)) == call


@pytest.mark.parametrize(
    "text",
    [
        "m:W(",
        "m:W(1",
        "m:W(x)",
        "m:W(**{'a': 1})",
        "m:W(*[1])",
        "m:W(1)(2)",
        "m:W(1) + 1",
        "m:W(1), 2",
        "m:W(print('x'))",
        "m:W(__import__('os'))",
        "m:W(f'{1}')",
        "m:W(1).x",
        "m:W(a=1, a=2)",
        "m:W(" + "[" * 100_000,
        "m:W(\0)",
    ],
    ids=lambda text: text[:20].replace("\0", "0"),
)
def test_arguments_that_are_no_literals_are_refused_and_never_run(text):
    with pytest.raises(ConfigError, match="cannot be read"):
        WithArguments.read(text)


def test_module_within_a_module_is_no_way_to_what_was_not_allowed():
    with pytest.raises(ConfigError, match="'os' is a module: write os: before what is in it"):
        import_named("cdqn.storage.named_code:os.system")


@pytest.mark.parametrize(
    "name",
    [
        "gymnasium.wrappers:RecordVideo",
        "gymnasium.wrappers:TransformObservation",
        "gymnasium.wrappers:vector.x",
        "gymnasium.wrappers_evil:TimeLimit",
        "gymnasium.utils:TimeLimit",
        "cdqn.envs.actions:gym",
    ],
)
def test_folder_may_name_harmless_wrappers_and_no_others(name, tmp_path, monkeypatch):
    monkeypatch.setattr(named_code, "_objects", {})
    import_allowed(tmp_path, {"wrapper": ["gymnasium.wrappers:TimeLimit(3)", "cdqn.envs.actions:NumberedActions"]}, ())
    assert len(named_code._objects) == 2
    with pytest.raises(CheckpointError, match="--allow-import"):
        import_allowed(tmp_path, {"wrapper": [f"{name}(video_folder='/tmp')"]}, ())
