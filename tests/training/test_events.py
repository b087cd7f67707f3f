"""Events and their rows."""

import json

from cdqn.training.events import Episode, Warned
from helpers import progress


def test_rows_are_flat_json_with_kind_and_step():
    episode = Episode(step=9, env=1, total_reward=2.5, length=4, ended="truncated")
    rows = [event.row() for event in (episode, progress(), Warned(5, "careful", "slow"))]
    expected = {"kind": "episode", "step": 9, "return": 2.5, "env": 1, "length": 4, "ended": "truncated"}
    assert rows[0] == expected
    assert rows[1]["kind"] == "progress"
    assert rows[1]["q_mean"] == 5.0
    assert rows[2] == {"kind": "warning", "step": 5, "message": "careful", "topic": "slow"}
    assert [json.loads(json.dumps(row)) for row in rows] == rows
