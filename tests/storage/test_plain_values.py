"""Values that can be compared and written down."""

import math

import numpy as np
import pytest

from cdqn.errors import ConfigError
from cdqn.storage.plain_values import (
    COUNT,
    POSITIVE,
    UNIT,
    numbers,
    object_text,
    pairs,
    read_object,
    require_choice,
    require_number,
    require_sizes,
)


def test_dict_survives_the_way_through_its_text_and_the_order_of_its_names_does_not_matter():
    value = {"b": [1, 2.5], "a": {"on": True}}
    assert read_object("x", object_text(value)) == value
    assert object_text(value) == object_text({"a": {"on": True}, "b": [1, 2.5]})
    assert object_text(None) is None
    assert read_object("x", None) == {}


@pytest.mark.parametrize("text", ["{", "", "[1]", "3", "null", "[" * 10_000])
def test_text_that_is_no_object_is_refused_by_name(text):
    with pytest.raises(ConfigError, match="env_kwargs is "):
        read_object("env_kwargs", text)


def test_what_json_has_no_word_for_is_refused_by_name():
    with pytest.raises(ConfigError, match="cannot be written down as env_kwargs"):
        object_text({"thing": object()})


def test_lists_and_arrays_become_tuples_of_numbers():
    assert numbers(np.array([8, 4])) == (8, 4)
    assert [type(n) for n in numbers(np.array([8, 4]))] == [int, int]
    assert numbers([1, "x"]) == (1, "x")
    assert numbers(7) == (None,), "which is not the empty list, and is refused"
    assert pairs([[0.5, 0.1], (1, 2)]) == ((0.5, 0.1), (1, 2))
    assert pairs([0.5]) == ((0.5,),)
    assert pairs(3) == ((),)


@pytest.mark.parametrize(("allowed", "good", "bad"), [(UNIT, 0.5, 1.5), (POSITIVE, 3.0, math.inf), (COUNT, 2, 0)])
def test_number_outside_its_range_is_refused_in_words(allowed, good, bad):
    require_number("x", good, allowed)
    require_number("x", None, allowed)
    for wrong in (bad, math.nan, "1", True, 2**63, 10**300):
        with pytest.raises(ConfigError, match=r"x is .*: it must be"):
            require_number("x", wrong, allowed)


@pytest.mark.parametrize("value", ["a", None])
def test_name_that_is_among_the_allowed_ones_is_accepted(value):
    require_choice("x", value, ("a", "b"))


@pytest.mark.parametrize("value", ["c", "mine:A", 3, True])
def test_name_that_is_not_is_refused_with_those_there_are(value):
    with pytest.raises(ConfigError, match=r"x is .*: it must be one of a, b$"):
        require_choice("x", value, ("a", "b"))


def test_own_code_is_accepted_where_it_can_be_named():
    require_choice("x", "mine:A", ("a", "b"), lambda name: ":" in name)
    with pytest.raises(ConfigError, match="one of a, b, or your own as module:Name"):
        require_choice("x", "c", ("a", "b"), lambda name: ":" in name)


@pytest.mark.parametrize(("sizes", "count"), [((1, 2), None), ((), None), ((3,), 1), (None, 2)])
def test_sizes_of_the_right_number_are_accepted(sizes, count):
    require_sizes("x", sizes, count, "sizes")


@pytest.mark.parametrize(("sizes", "count"), [((), 2), ((1, 2), 3), ((0,), None), ((1.5,), None), ((10**7,), None)])
def test_sizes_that_cannot_be_are_refused(sizes, count):
    with pytest.raises(ConfigError, match=r"x is .* must be some sizes from 1 to 1000000"):
        require_sizes("x", sizes, count, "some sizes")
