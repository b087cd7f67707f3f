"""kill -9 at random moments of random runs: what is resumed ends bit for bit where a run that nobody killed ends."""

import shutil

import numpy as np
import pytest
from children import Death, run, run_whole
from fuzzing import seed_of_round, times

from run_files import assert_same_end

SHORT = ["--hidden", "8", "--warmup-steps", "40", "--log-period-steps", "30", "--checkpoint-period-steps", "60"]
SHORT += ["--evaluation-episodes", "1", "--candidate-period-steps", "60"]
EAGER = ["--compile", "off"]
CART = ["train", "CartPole-v1", "--steps", "180", "--memory-size", "100", *SHORT]
FRAMES = ["train", "Breakout", "--preset", "paper-5.1", "--steps", "180", "--frame-size", "40", "36", "--channels"]
FRAMES += ["4", "4", "4", "--memory-size", "100", "--time-limit-steps", "60", "--target-period-updates", "20", *SHORT]
RUNS = {
    "prioritized": [*CART, *EAGER],
    "uniform, n 1, dqn": [*CART, *EAGER, "--replay", "uniform", "--n-step", "1", "--algorithm", "dqn"],
    "n 7, rg, one environment": [*CART, *EAGER, "--algorithm", "rg", "--n-step", "7", "--num-envs", "1"],
    "discard, random eviction": [
        *CART,
        *EAGER,
        "--eviction",
        "random",
        "--discard-fraction",
        "0.3",
        "--warmup-steps",
        "60",
    ],
    "calibrated": [*CART, *EAGER, "--horizon-multiplier", "15", "--n-step", "1", "--no-normalize-rewards"],
    "value transform, exact copy": [*CART, *EAGER, "--value-transform", "--target-copy", "exact", "--dueling"],
    "evaluated on the way": [*CART, *EAGER, "--evaluation-period-steps", "60", "--loss", "mse"],
    "frames": [*FRAMES, *EAGER],
    "frames, half lost": [
        *FRAMES,
        *EAGER,
        "--eviction",
        "random",
        "--discard-fraction",
        "0.5",
        "--warmup-steps",
        "80",
    ],
    "MinAtar": ["train", "MinAtar/Breakout-v1", "--steps", "180", "--memory-size", "100", *SHORT, *EAGER],
    "compiled": [*CART, "--compile", "on"],
}


def begin_or_resume(name, place):
    """What a user does who finds the folder as it is."""
    return ["resume", "run"] if (place / "run" / "config.json").exists() else [*RUNS[name], "--out", "run"]


@pytest.mark.parametrize("name", RUNS)
def test_killed_runs_end_bit_for_bit_where_the_others_do(name, tmp_path):
    compiled = name == "compiled"
    ended = run_whole([*RUNS[name], "--out", "run"], tmp_path / "whole", count=not compiled)
    counts = {"step": 200} if compiled else ended.counts
    for number in range(times(1, in_round=1)):
        seed = [seed_of_round(), number, *name.encode()]
        random = np.random.default_rng(seed)
        place = tmp_path / str(number)
        place.mkdir()
        deaths = []
        for _ in range(int(random.integers(1, 2 if compiled else 4))):  # a compiler takes its time
            kind = str(random.choice(list(counts)))
            deaths.append(Death(kind, int(random.integers(1, counts[kind] + 1))))
            ended = run(begin_or_resume(name, place), place, deaths[-1])
            if ended.code != -9:  # a resumed run makes fewer calls: it may come to its end
                break
        ended = run(begin_or_resume(name, place), place)
        assert ended.code == 0 or "is complete" in ended.said, (seed, deaths, ended.said)
        try:
            assert_same_end(place / "run", tmp_path / "whole" / "run")
        except AssertionError as error:
            raise AssertionError(f"{name}: seed {seed}, killed at {deaths}") from error
        shutil.rmtree(place)
