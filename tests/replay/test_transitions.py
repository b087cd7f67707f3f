"""Rows are counted only where every field has as many."""

import numpy as np
import pytest
from replay_twins import make_rows

from cdqn.errors import ConfigError
from cdqn.replay.transitions import Batch, Fields, Transitions, row_count


@pytest.mark.parametrize("field", Transitions._fields)
def test_field_of_another_length_is_named(field):
    rows = make_rows([1, 2, 3])
    assert row_count(rows) == 3
    # The observations are what the others are measured by: the first that differs from them is named.
    named = "action has 3" if field == "observation" else f"{field} has 2"
    with pytest.raises(ConfigError, match=rf"^transitions\.{named} rows"):
        row_count(rows._replace(**{field: getattr(rows, field)[:2]}))


def test_nothing_is_no_row():
    assert row_count(make_rows([])) == 0


def test_one_number_is_not_spread_over_all_rows():
    with pytest.raises(ConfigError, match=r"reward has 1 rows but transitions\.observation has 3"):
        row_count(make_rows([1, 2, 3])._replace(reward=np.ones(1, np.float32)))


def test_batch_begins_with_the_fields_that_are_kept():
    assert Batch._fields[:5] == Fields._fields == Transitions._fields[:5]
