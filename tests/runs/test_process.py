"""What a process of ours is told before it begins."""

import os
import subprocess
import sys

import pytest
import torch

from cdqn.envs import describe, make_vec
from cdqn.runs.process import tune_process

PROGRAM = """
import resource
import numpy as np
from cdqn.runs.process import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [np.ones(4 << 20, np.uint8) for _ in range(3)]  # 3072 pages, freed together: more than glibc keeps by itself
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50

given_back = faults()
assert keep_freed_memory()
faults()
print(given_back, faults())
"""


def test_freed_megabytes_are_not_paged_in_again():
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    given_back, kept = map(float, answer.stdout.split())
    assert kept < 5
    assert given_back > 500, "this platform keeps freed memory by itself: the setting is idle here"


@pytest.mark.parametrize(
    ("env_id", "asked_for", "threads"), [("CartPole-v1", None, 1), ("Pong", None, 7), ("Pong", "3", None)]
)
def test_frames_have_a_thread_for_each_core_unless_the_user_says_otherwise(env_id, asked_for, threads, monkeypatch):
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS")
    if asked_for:
        monkeypatch.setenv("OMP_NUM_THREADS", asked_for)
    tune_process(describe(make_vec(env_id, 1)))
    assert chosen == [threads] * (asked_for is None)
