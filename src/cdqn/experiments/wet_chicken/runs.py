"""Wet chicken, App. A.1 and figure 8: DQN (= neural fitted Q), C-DQN and RG on the same 20 000 random transitions.

A repeat has data, first weights and shuffles of its own, the same for the three algorithms. Repeats are trained in
groups (`fitted_q`), each group and algorithm a task for one core; what comes out depends on the seed alone, not on
the number of processes. A task saves itself, and goes on from there when it is started again.

Suffixes: E evaluations, R repeats, X positions 0 … 19, A actions, G points of the greedy policy's table.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cdqn.algorithms import ALGORITHMS, OF_THE_PAPER
from cdqn.envs.wet_chicken import NUM_ACTIONS, TURBULENCE, WATERFALL, next_position
from cdqn.errors import CheckpointError, ConfigError
from cdqn.experiments.processes import run_tasks
from cdqn.experiments.request import OnProgress, Request
from cdqn.experiments.wet_chicken.claims import Curves, judge, rows
from cdqn.experiments.wet_chicken.figure import published
from cdqn.experiments.wet_chicken.fitted_q import Data, FittedQ, StackedMLP, draw_parameters
from cdqn.report.reproduction import Reproduction
from cdqn.runs.workers.tasks import Pool
from cdqn.storage.checkpoint import load_checkpoint, newest_step, save_checkpoint

FloatArray = NDArray[np.float64]

GROUP_REPEATS = 5
"""Repeats trained at once in a process, at most: ten repeats of three algorithms are even work for two cores."""
GRID = 4000
"""Points at which the greedy policy is tabulated for its evaluation: every 0.005 of the river."""

# Each use of a seed draws from a stream of its own.
_DATA, _WEIGHTS, _SHUFFLE, _EVALUATION, _MEAN_WEIGHTS = range(5)


@dataclass(frozen=True)
class WetChickenSetting:
    """What all runs share; the defaults are the paper's."""

    repeats: int = 10
    epochs: int = 2000
    transitions: int = 20_000
    batch_size: int = 200
    hidden: tuple[int, ...] = (128, 128, 128, 128)
    gamma: float = 0.97
    learning_rate: float = 1e-3
    evaluation_period_epochs: int = 5
    evaluation_trials: int = 200
    evaluation_steps: int = 300
    checkpoint_period_epochs: int = 50

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if isinstance(value := getattr(self, field.name), int) and value < 1:
                raise ConfigError(f"{field.name} is {value}: it must be a whole number of at least 1")

    @property
    def evaluated_epochs(self) -> list[int]:
        """Before the first epoch, after every `evaluation_period_epochs`-th, and after the last."""
        return sorted({*range(0, self.epochs + 1, self.evaluation_period_epochs), self.epochs})

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1: ÷10 from half of them on, ÷100 from three quarters."""
        decades = sum(epoch >= round(self.epochs * part) for part in (1 / 2, 3 / 4))
        return self.learning_rate * 0.1**decades


SCALES = {
    "smoke": WetChickenSetting(
        repeats=2, epochs=10, transitions=1_000, batch_size=50, hidden=(32, 32), evaluation_trials=20
    ),
    "laptop": WetChickenSetting(repeats=4, epochs=650, transitions=5_000, batch_size=50),
    "paper": WetChickenSetting(),
}


@dataclass(frozen=True)
class History:
    """What a task recorded, at `WetChickenSetting.evaluated_epochs`."""

    reward_ER: FloatArray
    """Average reward per step of the greedy policy."""
    q_ERXA: FloatArray
    """Q at the positions 0 … 19, in units of the normalised reward."""


def reproduce(request: Request) -> Reproduction:
    """Figure 8: train what is not yet trained, and judge it by the paper's sentences.

    Checkpoints go to `out`/wet_chicken: started again with the same request, a killed run goes on.
    """
    setting = SCALES[request.scale]
    if request.runs is not None:
        setting = dataclasses.replace(setting, repeats=request.runs)
    folder = (request.out or Path()) / "wet_chicken" / f"{request.scale}-{setting.repeats}-seed{request.seed}"
    curves = train_all(setting, request.seed, request.pool, folder, request.on_progress, request.algorithms)
    about = (
        f"{setting.epochs} epochs on {setting.transitions:,} transitions, batch {setting.batch_size}, "
        f"{request.about(setting.repeats)}"
    )
    data = rows(curves)
    settings = dataclasses.asdict(setting)
    return Reproduction("fig8", about, data, judge(curves, request.scale), published(data[0].setting), settings)


def train_all(
    setting: WetChickenSetting,
    seed: int,
    pool: Pool,
    folder: Path,
    on_progress: OnProgress | None = None,
    algorithms: Sequence[str] = OF_THE_PAPER,
) -> Curves:
    """The algorithms on all repeats."""
    # Two groups at least, for two cores, but none of a single repeat: that takes nearly as long as two.
    count = max(1, math.ceil(setting.repeats / GROUP_REPEATS), min(2, setting.repeats // 2))
    groups = [part.tolist() for part in np.array_split(np.arange(setting.repeats), count)]
    names = [(algorithm, group) for algorithm in algorithms for group in groups]
    tasks = {
        f"{ALGORITHMS[algorithm].label}, repeats {group[0]} to {group[-1]},": partial(
            train_group, setting, algorithm, group, seed, folder / f"{algorithm}-{group[0]}-{group[-1]}"
        )
        for algorithm, group in names
    }
    histories = run_tasks(tasks, pool, setting.epochs, on_progress)
    reward: dict[str, FloatArray] = {}
    q: dict[str, FloatArray] = {}
    for algorithm in algorithms:
        mine = [history for (name, _), history in zip(names, histories, strict=True) if name == algorithm]
        reward[algorithm] = np.concatenate([history.reward_ER for history in mine], 1)
        q[algorithm] = np.concatenate([history.q_ERXA for history in mine], 1)
    return Curves(np.array(setting.evaluated_epochs), reward, q)


def train_group(
    setting: WetChickenSetting,
    algorithm: str,
    repeats: Sequence[int],
    seed: int,
    folder: Path | None,
    on_progress: Callable[[int], None] | None = None,
) -> History:
    """One algorithm on some of the repeats, from its newest checkpoint in `folder` if there is one.

    Without a folder nothing is saved.
    """
    learner = make_learner(setting, algorithm, repeats, seed)
    network = learner.network
    epochs = setting.evaluated_epochs
    history = History(
        np.full((len(epochs), len(repeats)), np.nan),
        np.full((len(epochs), len(repeats), int(WATERFALL), NUM_ACTIONS), np.nan),
    )
    done = newest_step(folder) if folder else 0
    if folder and done:
        _restore(folder, setting, learner, history)
    else:
        _record(setting, network, repeats, seed, 0, history)
    for epoch in range(done + 1, setting.epochs + 1):
        order = [generator(seed, _SHUFFLE, repeat, epoch).permutation(setting.transitions) for repeat in repeats]
        learner.epoch(torch.from_numpy(np.stack(order)), setting.rate(epoch))
        if epoch in epochs:
            _record(setting, network, repeats, seed, epoch, history)
        if folder and (epoch % setting.checkpoint_period_epochs == 0 or epoch == setting.epochs):
            save_checkpoint(folder, epoch, _state(setting, learner, history))
        if on_progress:
            on_progress(epoch)
    if on_progress:
        on_progress(setting.epochs)
    return history


def make_learner(setting: WetChickenSetting, algorithm: str, repeats: Sequence[int], seed: int) -> FittedQ:
    """With first weights that are the same for every algorithm."""
    widths = (1, *setting.hidden, NUM_ACTIONS)

    def draw(stream: int) -> StackedMLP:
        return StackedMLP([draw_parameters(generator(seed, stream, repeat), widths) for repeat in repeats])

    return FittedQ(
        algorithm,
        draw(_WEIGHTS),
        make_data(setting, repeats, seed),
        setting.gamma,
        setting.batch_size,
        mean_network=draw(_MEAN_WEIGHTS) if algorithm == "dcdqn" else None,
    )


def make_data(setting: WetChickenSetting, repeats: Sequence[int], seed: int) -> Data:
    """Random actions from x = 0 on; positions and rewards divided by 20."""
    count = setting.transitions
    x_RT = np.zeros((len(repeats), count + 1))
    generators = [generator(seed, _DATA, repeat) for repeat in repeats]
    action_RT = np.stack([rng.integers(NUM_ACTIONS, size=count) for rng in generators])
    noise_RT = np.stack([rng.uniform(-TURBULENCE, TURBULENCE, count) for rng in generators])
    for step in range(count):
        x_RT[:, step + 1] = next_position(x_RT[:, step], action_RT[:, step], noise_RT[:, step])
    scaled_RT = torch.from_numpy((x_RT / WATERFALL).astype(np.float32))
    next_RT = scaled_RT[:, 1:].contiguous()
    return Data(scaled_RT[:, :-1].contiguous(), torch.from_numpy(action_RT), next_RT, next_RT)


def average_reward(
    action_RG: NDArray[np.integer], steps: int, trials: int, generators: Sequence[np.random.Generator]
) -> FloatArray:
    """Reward per step of the policies tabulated in `action_RG`, each from x = 0, mean over trials."""
    points = action_RG.shape[1]
    noise_SRT = np.stack([rng.uniform(-TURBULENCE, TURBULENCE, (steps, trials)) for rng in generators], 1)
    x_RT = np.zeros((len(generators), trials))
    total_R = np.zeros(len(generators))
    for noise_RT in noise_SRT:
        nearest_RT = np.minimum(np.rint(x_RT * (points / WATERFALL)).astype(np.int64), points - 1)
        x_RT = next_position(x_RT, np.take_along_axis(action_RG, nearest_RT, 1), noise_RT)
        total_R += x_RT.mean(1)
    return total_R / steps


def generator(seed: int, *stream: int) -> np.random.Generator:
    """Fresh random numbers for one use: nothing about them has to be saved."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))


def _record(
    setting: WetChickenSetting, network: StackedMLP, repeats: Sequence[int], seed: int, epoch: int, history: History
) -> None:
    place = setting.evaluated_epochs.index(epoch)
    grid_G = torch.arange(GRID, dtype=torch.float64).div(GRID).to(network.theta.dtype)
    q_RGA = network.q_values(grid_G.expand(len(repeats), -1).contiguous()).numpy()
    generators = [generator(seed, _EVALUATION, repeat, epoch) for repeat in repeats]
    history.reward_ER[place] = average_reward(
        q_RGA.argmax(2), setting.evaluation_steps, setting.evaluation_trials, generators
    )
    history.q_ERXA[place] = q_RGA[:, :: GRID // int(WATERFALL)]


def _state(setting: WetChickenSetting, learner: FittedQ, history: History) -> dict[str, Any]:
    arrays = {"reward": history.reward_ER, "q": history.q_ERXA}
    return {"setting": _plain(setting), "learner": learner.state_dict(), "history": arrays}


def _restore(folder: Path, setting: WetChickenSetting, learner: FittedQ, history: History) -> None:
    state = load_checkpoint(folder)
    if state["setting"] != _plain(setting):
        raise CheckpointError(f"{folder} was trained with other settings: remove it, or choose another --out")
    learner.load_state_dict(state["learner"])
    history.reward_ER[:] = state["history"]["reward"]
    history.q_ERXA[:] = state["history"]["q"]


def _plain(setting: WetChickenSetting) -> dict[str, Any]:
    """As JSON gives it back."""
    return dataclasses.asdict(setting) | {"hidden": list(setting.hidden)}
