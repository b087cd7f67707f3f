"""Random streams: each consumer has its own, and all come from the seed."""

import numpy as np
import torch

from cdqn.training import seeding
from helpers import make_trainer


def test_seed_reaches_weights_actions_replay_and_environments():
    one, other = make_trainer(seed=0), make_trainer(seed=1)
    assert not torch.equal(one.learner.theta, other.learner.theta)
    assert not np.array_equal(one.collector.observation, other.collector.observation)
    states = [trainer.state_dict() for trainer in (one, other)]
    assert states[0]["rng"] != states[1]["rng"]
    assert states[0]["replay"]["rng"] != states[1]["replay"]["rng"]
    assert states[0]["rng"] != states[0]["replay"]["rng"]


def test_keys_are_those_of_the_table():
    """Other keys would give every run of every seed another course."""
    keys = seeding.REPLAY, seeding.EXPLORATION, seeding.EVALUATION, seeding.VALIDATION, seeding.TEST
    assert keys == ((0,), (1,), (2,), (3,), (4,))
    assert (seeding.OFFLINE_POLICY, seeding.OFFLINE_REPLAY) == ((3,), (4,))


def test_streams_differ_by_key_and_by_seed_and_repeat():
    firsts = {(seed, key): seeding.generator(seed, (key,)).random() for seed in range(3) for key in range(5)}
    assert len(set(firsts.values())) == 15
    assert seeding.generator(2, (4,)).random() == firsts[2, 4]


def test_stream_of_a_key_is_that_of_numpys_seed_sequence():
    expected = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(1,))).random(3)
    np.testing.assert_array_equal(seeding.generator(7, seeding.EXPLORATION).random(3), expected)


def test_derived_seeds_differ_and_have_32_bits():
    seeds = {seeding.derived_seed(seed, (key,)) for seed in range(10) for key in range(10)}
    assert len(seeds) == 100
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
