"""Compiled programs: traced once, for tensors that are left alone, and only where there is a compiler."""

import pytest
import torch
import torch._inductor

from cdqn.training.compiler import compile_for, compiler_found


@pytest.fixture
def traced_only(monkeypatch):
    """The graph itself, without the C++ that is made of it."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, examples, options: graph)


@pytest.mark.usefixtures("traced_only")
def test_program_computes_what_the_function_does_and_tracing_changes_no_input():
    calls = []

    def double_(tensor):
        calls.append(1)
        return (tensor.mul_(2).sum(),)

    example = torch.ones(3)
    program = compile_for(double_, [example])
    assert example.tolist() == [1, 1, 1]
    tensor = torch.tensor([1.0, 2.0, 3.0])
    assert program(tensor)[0].item() == 12
    assert tensor.tolist() == [2, 4, 6]
    assert len(calls) == 1, "the function itself runs once, to be traced"


@pytest.mark.usefixtures("traced_only")
def test_function_that_branches_on_values_cannot_be_compiled():
    with pytest.raises(Exception, match="data-dependent"):
        compile_for(lambda tensor: (tensor if tensor.sum() > 0 else -tensor,), [torch.ones(3)])


def test_compiler_is_the_one_that_is_named_or_one_of_the_usual_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert not compiler_found()
    for name in ("clang++", "mine"):
        (tmp_path / name).touch(mode=0o755)
    assert compiler_found()
    monkeypatch.setenv("CXX", "mine")
    assert compiler_found()
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not compiler_found()
