"""Speed on Atari: against stable-baselines3's DQN, and against the bare networks.

    python benchmarks/atari_speed.py [--repeats 5] [--seconds 25]

Part 1: the same work as stable-baselines3's DQN on Space Invaders: 84×84 frames, its convolutional network, plain
DQN (no double Q, no dueling, uniform replay, Huber loss, Adam), batch 32, one update for every 4 steps, 4
environments; alternating, after learning has begun. The padding of 2 that the paper's network has is left out here,
so that the two networks are the same. Each side has a process of its own, ours set up as the command line does it.

Part 2: C-DQN under paper-5.1. The limit is 4/(t_update + t_act): the bare update on batches drawn beforehand, and one
forward pass for 4 states. How near the loop comes to it, and which share of its time is spent inside the networks.
"""

import argparse
import contextlib
import csv
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

import cdqn
from cdqn.nn.networks import DuelingCNN
from cdqn.runs.process import tune_process
from cdqn.training.trainer import Trainer

RESULTS = Path(__file__).parent / "results" / "atari_speed.csv"
WARMUP_STEPS = 2_000
Learn = Callable[[int], Any]


def peer() -> Learn:
    """stable-baselines3's DQN; returns a function that trains it further."""
    import ale_py
    import gymnasium
    import stable_baselines3
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    gymnasium.register_envs(ale_py)
    model = stable_baselines3.DQN(
        "CnnPolicy",
        VecFrameStack(make_atari_env("SpaceInvadersNoFrameskip-v4", 4, seed=0), 4),
        learning_rate=1e-4,
        buffer_size=20_000,
        learning_starts=WARMUP_STEPS - 400,
        batch_size=32,
        train_freq=1,  # of 4 environments: one update for 4 steps
        gradient_steps=1,
        target_update_interval=2_000,
        exploration_fraction=1e-6,
        exploration_final_eps=0.1,
        device="cpu",
        seed=0,
    )
    return lambda steps: model.learn(steps, reset_num_timesteps=False, log_interval=10**9)


def ours(**settings: Any) -> cdqn.Agent:
    """Our agent on the same game, with ε where the peer has it."""
    agent_class = cdqn.CDQN if "preset" in settings else cdqn.DQN
    return agent_class(
        "SpaceInvaders",
        memory_size=20_000,
        warmup_steps=WARMUP_STEPS - 400,
        steps=100_000_000,
        epsilon_middle_fraction=0.0,
        epsilon_middle=0.1,
        epsilon_final=0.1,
        epsilon_final_fraction=1.0,
        seed=0,
        **settings,
    )


def same_work() -> cdqn.Agent:
    """What the peer does."""
    padded = DuelingCNN.KERNELS
    DuelingCNN.KERNELS = tuple((size, stride, 0) for size, stride, _ in padded)
    agent = ours(
        frame_size=(84, 84),
        channels=(32, 64, 64),
        hidden=(512,),
        dueling=False,
        double_q=False,
        replay="uniform",
        update_period_steps=4,
        target_period_updates=500,
        learning_rate=1e-4,
        learning_rate_decay=1.0,
    )
    for network in (agent.trainer.learner.networks["q"], agent.trainer.learner.target_networks["q"]):
        network.KERNELS = DuelingCNN.KERNELS
    DuelingCNN.KERNELS = padded
    return agent


class Side:
    """One side of the comparison, in a process of its own that has learned beyond the warm-up."""

    def __init__(self, make: Callable[[], Learn], threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        context.Process(target=serve, args=(make, threads, other), daemon=True).start()
        self._pipe.recv()

    def steps_per_second(self, seconds: float) -> float:
        """Over at least so many seconds."""
        self._pipe.send(seconds)
        speed: float = self._pipe.recv()
        return speed


def serve(make: Callable[[], Learn], threads: int, pipe: Any) -> None:
    """In the process of a side: learn whenever asked to."""
    learn = make()
    torch.set_num_threads(threads)
    learn(WARMUP_STEPS)
    pipe.send("ready")
    with contextlib.suppress(EOFError):  # the other end is closed: nothing more is asked
        while True:
            pipe.send(timed(learn, pipe.recv()))


def ours_tuned() -> Learn:
    """Our side, as `cdqn train` would run it."""
    tune_process()
    return same_work().learn


def timed(learn: Learn, seconds: float) -> float:
    """Steps per second over at least so many seconds."""
    begin, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - begin) < seconds:
        learn(200)
        steps += 200
    return steps / elapsed


class Stopwatch:
    """Time spent in one function."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def around(self, owner: Any, name: str) -> Iterator[None]:
        """While the block runs, calls of `owner.name` are timed."""
        function = getattr(owner, name)

        def measured(*arguments: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                self.seconds += time.perf_counter() - begin

        setattr(owner, name, measured)
        try:
            yield
        finally:
            setattr(owner, name, function)


def profile_loop(agent: cdqn.Agent, steps: int) -> dict[str, float]:
    """Milliseconds per 4 steps spent in each part of the loop."""
    trainer = agent.trainer
    parts = {
        "update": (trainer.learner, "update"),
        "act": (trainer.actor, "greedy"),
        "environment": (trainer.collector.env, "step"),
        "wait for the batch": (trainer._prefetcher, "take"),
        "store": (trainer.replay, "add"),
        "priorities": (trainer.replay, "update_priorities"),
    }
    watches = {name: Stopwatch() for name in parts}
    with ExitStack() as stack:
        for name, (owner, function) in parts.items():
            stack.enter_context(watches[name].around(owner, function))
        begin = time.perf_counter()
        agent.learn(steps)
        whole = time.perf_counter() - begin
    times = {name: watch.seconds for name, watch in watches.items()}
    times["the rest"] = whole - sum(times.values())
    return {name: 4e3 * seconds / steps for name, seconds in times.items()} | {"whole": 4e3 * whole / steps}


def bare_networks(trainer: Trainer, updates: int) -> tuple[float, float]:
    """Milliseconds of an update and of a forward pass for 4 states, with nothing around them."""
    # Each batch is used once, as in the loop: what was learned already is more often on the costlier branch.
    batches = [trainer.replay.sample(trainer.config.batch_size) for _ in range(updates)]
    updates_before = trainer.learner.updates
    begin = time.perf_counter()
    for batch in batches:
        trainer.learner.update(batch)
    t_update = 1e3 * (time.perf_counter() - begin) / updates
    trainer.learner.updates = updates_before  # else the loop would leave out as many
    begin = time.perf_counter()
    for _ in range(updates):
        trainer.actor.greedy(trainer.collector.observation)
    return t_update, 1e3 * (time.perf_counter() - begin) / updates


def spread(values: list[float], digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f} [{min(values):.{digits}f} … {max(values):.{digits}f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    rows: list[tuple[str, int, float]] = []

    makers = {"stable-baselines3 DQN": peer, "cdqn DQN, the same work": ours_tuned}
    sides = {name: Side(make, arguments.threads) for name, make in makers.items()}
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(arguments.repeats):
        for name, side in sides.items():
            speeds[name].append(side.steps_per_second(arguments.seconds))
    theirs, mine = speeds.values()
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    print(f"Space Invaders, {arguments.threads} threads, {arguments.repeats} alternating repeats")
    for name, values in speeds.items():
        print(f"  {name:<26} {spread(values)} steps/s")
        rows += [(f"steps/s, {name}", i, value) for i, value in enumerate(values)]
    print(f"  ratio {spread(ratios, 2)}")
    rows += [("ratio", i, value) for i, value in enumerate(ratios)]

    tune_process()
    torch.set_num_threads(arguments.threads)
    agent = ours(preset="paper-5.1")
    agent.learn(WARMUP_STEPS)
    shares, nearness, parts = [], [], []
    for i in range(arguments.repeats):
        t_update, t_act = bare_networks(agent.trainer, max(1, round(arguments.seconds * 4)))
        parts.append(profile_loop(agent, 4 * max(1, round(arguments.seconds * 8))))
        shares.append((parts[-1]["update"] + parts[-1]["act"]) / parts[-1]["whole"])
        nearness.append((t_update + t_act) / parts[-1]["whole"])
        rows += [("t_update ms", i, t_update), ("t_act ms", i, t_act), ("loop ms", i, parts[-1]["whole"])]
        rows += [("share in networks", i, shares[-1]), ("loop / limit", i, nearness[-1])]
    print("C-DQN under paper-5.1, milliseconds for 4 steps")
    for name in parts[0]:
        print(f"  {name:<20} {spread([part[name] for part in parts])}")
        rows += [(f"loop ms, {name}", i, part[name]) for i, part in enumerate(parts)]
    print(f"  inside the networks  {spread([100 * value for value in shares])} %")
    print(f"  of the limit 4/(t_update + t_act) the loop reaches {spread([100 * value for value in nearness])} %")
    print(f"  steps/s {spread([4e3 / part['whole'] for part in parts])}")
    RESULTS.parent.mkdir(exist_ok=True)
    with open(RESULTS, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "repeat", "value"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
