"""What environments show, in the form that networks take."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Text, Tuple

import cdqn
from cdqn.envs.observations import adapted, adapter_for, batch_of, form_of
from cdqn.errors import ConfigError, UnsupportedEnvironmentError


def pixels(*shape, dtype=np.uint8, high=255):
    return Box(0, high, shape, dtype)


@pytest.mark.parametrize(
    ("space", "form", "shape"),
    [
        (pixels(96, 96, 3), "image", (3, 96, 96)),
        (pixels(3, 96, 96), "image", (3, 96, 96)),
        (pixels(210, 160, 3), "image", (3, 210, 160)),
        (pixels(4, 84, 84), "image", (4, 84, 84)),
        (pixels(84, 84, 4), "image", (4, 84, 84)),
        (pixels(84, 84), "image", (1, 84, 84)),
        (pixels(40, 40, 40), "image", (40, 40, 40)),
        (pixels(4, 96, 96, 3), "image", (12, 96, 96)),
        (pixels(4, 3, 96, 96), "image", (12, 96, 96)),
        (pixels(7, 7, 3), "board", (7, 7, 3)),
        (pixels(3, 7, 7), "board", (7, 7, 3)),
        (pixels(10, 10, 10, dtype=np.bool_, high=1), "board", (10, 10, 10)),
        (pixels(30, 80, 4), "board", (30, 80, 4)),
        (Box(0, 1, (20, 20, 2), np.float32), "board", (20, 20, 2)),
        (Box(-1, 1, (5, 5), np.float32), "vector", (25,)),
        (Box(-1, 1, (2, 2, 2, 2), np.float32), "vector", (16,)),
        (Box(-1, 1, (2, 2, 2), np.float32), "vector", (8,)),
        (Box(-1, 1, (), np.float32), "vector", (1,)),
        (Box(-1, 1, (3,), np.float32), "vector", (3,)),
    ],
)
def test_every_array_has_a_form(space, form, shape):
    adapter = adapter_for(space)
    if adapter is None:
        assert (form_of(space), space.shape) == (form, shape)
        return
    sample = space.sample()
    seen = adapter.convert(sample)
    assert (adapter.form, adapter.target.shape, seen.shape, seen.dtype) == (form, shape, shape, space.dtype)
    assert adapter.target.contains(seen)
    assert sorted(seen.ravel().tolist()) == sorted(sample.ravel().tolist())


def test_channels_of_a_stack_come_image_by_image_and_rows_stay_rows():
    numbered = np.arange(2 * 40 * 50 * 3).reshape(2, 40, 50, 3).astype(np.uint8)
    seen = adapter_for(pixels(2, 40, 50, 3)).convert(numbered)
    for channel in range(6):
        assert np.array_equal(seen[channel], numbered[channel // 3, :, :, channel % 3])


@pytest.mark.parametrize("space", [pixels(96, 96, 3, dtype=np.float32, high=1), pixels(80, 80, dtype=np.float32)])
def test_arrays_that_are_too_large_for_what_they_are_have_no_form(space):
    assert adapter_for(space) is None
    assert form_of(space) is None


def test_text_is_left_out_of_dicts_by_name():
    space = Dict({"a": Discrete(2), "deep": Dict({"word": Text(3), "b": Box(0, 1, (1,))}), "mission": Text(9)})
    adapter = adapter_for(space)
    assert adapter.dropped == ("deep.word", "mission")
    seen = adapter.convert({"a": 1, "deep": {"word": "up", "b": np.array([0.5])}, "mission": "go"})
    assert seen.tolist() == [0, 1, 0.5]
    assert adapter_for(Dict({"only": Text(3)})) is None


class Mission(gym.Space):
    """A kind of space of somebody's own, as MiniGrid's missions are."""

    def __init__(self, dtype):
        super().__init__(dtype=dtype)


def test_text_of_another_kind_is_left_out_and_what_is_unknown_is_not_guessed():
    assert adapter_for(Dict({"a": Discrete(2), "mission": Mission(str)})).dropped == ("mission",)
    assert adapter_for(Dict({"a": Discrete(2), "mission": Mission(None)})) is None
    assert adapter_for(Mission(None)) is None


def test_agent_says_which_text_it_leaves_out():
    class Errand(gym.Env):
        observation_space = Dict({"image": pixels(7, 7, 3), "mission": Text(9)})
        action_space = Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return {"image": np.zeros((7, 7, 3), np.uint8), "mission": "go"}, {}

        def step(self, action):
            return self.reset()[0], 0.0, False, True, {}

    with pytest.warns(UserWarning, match="has text, which is left out: mission"):
        agent = cdqn.DQN(Errand(), compile="off")
    assert agent.spec.observation_shape == (147,)
    assert agent.predict({"image": np.ones((7, 7, 3), np.uint8), "mission": "stop"}) in (0, 1)
    with pytest.raises(ConfigError, match="predict got"):
        agent.predict({"mission": "stop"})


@pytest.mark.parametrize(
    ("space", "one"),
    [
        (Discrete(4), 3),
        (MultiDiscrete([2, 3]), np.array([1, 2])),
        (pixels(40, 40, 3), np.ones((40, 40, 3), np.uint8)),
    ],
    ids=["number", "numbers", "image"],
)
def test_one_observation_and_several_become_a_batch(space, one):
    adapter = adapter_for(space)
    shape = adapter.target.shape
    batch, single = batch_of(one, shape, adapter)
    assert single
    assert batch.shape == (1, *shape)
    several, single = batch_of(np.stack([one, one]), shape, adapter)
    assert not single
    assert np.array_equal(several, np.concatenate([batch, batch]))
    assert np.array_equal(batch_of(np.stack([batch[0]] * 3), shape, adapter)[0], np.stack([batch[0]] * 3))
    with pytest.raises(ValueError, match="neither"):
        batch_of(np.zeros((2, 2, 2)), shape, adapter)


def test_tuple_is_one_observation():
    adapter = adapter_for(Tuple((Discrete(2), Box(0, 1, (1,)))))
    batch, single = batch_of((1, np.array([0.5])), (3,), adapter)
    assert single
    assert batch.tolist() == [[0, 1, 0.5]]


def test_observation_that_is_not_in_its_space_is_named():
    class Lying(gym.Env):
        observation_space, action_space = pixels(40, 50, 3), Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.zeros((40, 50), np.uint8), {}

    with pytest.raises(UnsupportedEnvironmentError, match=r"of shape \(40, 50\) is not in .* own space, Box"):
        adapted(Lying()).reset()
