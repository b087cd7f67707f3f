"""Named presets: settings that belong together, with their source.

A preset is for one kind of environment; what the user sets goes before it. Those of the paper name the games and
algorithms that the paper ran with them. A setting that they leave out has its default, which is then the paper's.
"""

import dataclasses
import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdqn.algorithms import OF_THE_PAPER, find_algorithm
from cdqn.config import PREPROCESSING, Config, at_odds
from cdqn.envs import Kind, atari_game
from cdqn.errors import ConfigError
from cdqn.tasks.oscillator import published as oscillator


@dataclass(frozen=True)
class Preset:
    """Settings for one kind of environment."""

    kind: Kind
    source: str
    """Where the settings are from, and what for."""
    settings: Mapping[str, Any]
    per_algorithm: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings in which the algorithms differ, before those they share."""
    games: tuple[str, ...] = ()
    """What the paper ran with it; empty where the preset is not of the paper."""
    algorithms: tuple[str, ...] = OF_THE_PAPER
    """What the paper ran with it; the preset works for the others as well."""
    seeds: int = 1
    """Runs of each algorithm on each game."""

    def settings_of(self, algorithm: str) -> dict[str, Any]:
        """What the preset says for one algorithm, less what cannot act in it; a variant begins with its parent's."""
        settings = dict(self.settings)
        for parent in reversed(find_algorithm(algorithm).__mro__):
            settings |= self.per_algorithm.get(vars(parent).get("name", ""), {})
        return without_idle(algorithm, settings)


_ATARI: dict[str, Any] = {
    # App. E.1, unless said otherwise
    "steps": 50_000_000,
    "num_envs": 4,  # authors' code: interleaved, one forward pass for 4 steps
    "hidden": (512,),  # Wang et al. (2016)
    "channels": (32, 64, 64),  # Wang et al. (2016)
    "loss": "huber",
    "learning_rate": 6.25e-5,
    "learning_rate_decay": 1.0,
    "batch_size": 32,
    "gradient_clip_norm": 10.0,
    "update_period_steps": 4,
    "target_period_updates": 2_000,
    "warmup_steps": 50_000,
    "memory_size": 1_000_000,
    "alpha": 0.6,  # App. E.2
    "initial_priority": 100**0.6,  # authors' code, which made the curves; App. E.2 has 100
    "epsilon_middle_fraction": 0.02,  # step 10⁶ of 5·10⁷
    "epsilon_final_fraction": 0.8,  # step 4·10⁷ of 5·10⁷
    "candidate_period_steps": 10_000,  # App. B.4
}
_STANDARD = _ATARI | {"gamma": 0.99, "reward_clip": True}
_ADAM_EPSILON = {"dqn": {"adam_epsilon": 1.5e-4}, "cdqn": {"adam_epsilon": 5e-5}, "rg": {"adam_epsilon": 5e-6}}

_HALF_BUDGET = {
    # Authors' code, and the ends of the curves. ε and β run over these steps; in the text and in the authors' code
    # they run over 5·10⁷ whatever the budget, so that a run ends with ε 0.045 and β 0.7 instead of 0.01 and 1.
    "steps": 25_000_000,
}
_INCOMPLETE = (
    _STANDARD
    | _HALF_BUDGET
    | {
        "loss": "mse",
        "adam_epsilon": 1.5e-4,  # of every algorithm; the authors' code has 5e-5 for C-DQN, as in Sec. 5.1
        "raise_predecessor": False,  # App. E.2
    }
)
_SMALL_MEMORY = {"memory_size": 100_000}  # Sec. 5.2: "reduced by a factor of 10"
_RANDOM_REPLACEMENT = {"eviction": "random"}  # Sec. 5.2

_AUTOMATIC = _ATARI | {
    "horizon_multiplier": 15.0,  # App. E.3
    "reward_clip": False,
    "value_transform": True,
    "learning_rate": 4e-5,  # Fig. 7
    "adam_epsilon": 1e-6,
    "gradient_clip_norm": 5.0,
    "alpha": 0.9,  # App. E.2
    "initial_priority": 100**0.9,  # authors' code, which made the curves; App. E.2 has 100
}

_ORIGINAL_PRIORITIES = _STANDARD | {
    "priority_scheme": "original",  # Fig. 14
    "raise_predecessor": False,  # App. E.2
}


def _incomplete(figure: str, changes: dict[str, Any], algorithms: tuple[str, ...] = ("cdqn", "dqn")) -> Preset:
    return Preset(
        kind="atari",
        source=f"Sec. 5.2, {figure}",
        games=("SpaceInvaders",),
        algorithms=algorithms,
        settings=_INCOMPLETE | changes,
    )


def _target_period(updates: int) -> Preset:
    return Preset(
        kind="atari",
        source="App. B.3, Fig. 11",
        games=("SpaceInvaders", "Hero"),
        algorithms=("cdqn", "dqn"),
        settings=_STANDARD | _HALF_BUDGET | {"target_period_updates": updates},  # App. B.3
        per_algorithm=_ADAM_EPSILON,  # App. B.3: "using the experimental settings in Sec. 5.1"
    )


def _priority_epsilon(epsilon: str) -> Preset:
    return Preset(
        kind="atari",
        source="App. E.2, Fig. 14",
        games=("SpaceInvaders",),
        algorithms=("dqn",),
        settings=_ORIGINAL_PRIORITIES | {"priority_epsilon": float(epsilon)},  # Fig. 14
        per_algorithm=_ADAM_EPSILON,  # App. E.2: "the experimental settings in Sec. 5.1"
    )


_VECTOR = {
    "learning_rate": 1e-3,  # with 5e-4 CartPole and MountainCar take twice as long
    "n_step": 3,  # rewards travel three times as far per copy; 5 was faster at first, and worse in the end
    "normalize_rewards": True,  # Huber's threshold and the step size mean the same in every task
    "exploration": "epsilon-z",  # a single random action moves a car hardly at all; C-DQN needs to be shown around
}
_TABULAR = _VECTOR | {
    "hidden": (),  # a table: what has not been tried keeps its first value
    "dueling": False,
    "n_step": 1,  # returns over several steps contain the falls of exploration
    "learning_rate": 1e-2,  # each number is its own, and is touched once in a hundred updates
    "epsilon_middle_fraction": 0.3,  # nothing is known of a state from its neighbours: each is to be seen
}
_MINATAR = {
    "steps": 200_000,
    "learning_rate": 1e-3,  # better than 5e-4 for C-DQN and DQN on Breakout and Space Invaders
    "n_step": 3,
    "hidden": (64,),  # two dueling streams of 64: together the 128 units of Young & Tian
    "exploration": "epsilon-z",
    "warmup_steps": 3_000,
    "update_period_steps": 2,
}
_IMAGES = _VECTOR | {
    "steps": 200_000,
    "channels": (16, 32, 32),  # as for Pong on a laptop: a quarter of the paper's products
    "hidden": (256,),
    "learning_rate": 5e-4,
    "initial_weights": "pytorch",
    "update_period_steps": 2,
    "warmup_steps": 2_000,
    "memory_size": 50_000,
}
_TARGET_PERIODS = {
    # C-DQN advances with the number of copies and can afford short periods, where DQN diverges (App. B.3).
    "cdqn": {"target_period_updates": 20},
    "dqn": {"target_period_updates": 100},
}


PRESETS: dict[str, Preset] = {
    "classic-control": Preset(
        kind="vector",
        source="the defaults for vectors; chosen in docs/tuning.md, measured in docs/results.md",
        settings=_VECTOR,
        per_algorithm=_TARGET_PERIODS,
    ),
    "tabular": Preset(
        kind="discrete",
        source="a table for numbered states (FrozenLake, Taxi); chosen in docs/tuning.md, measured in docs/results.md",
        settings=_TABULAR,
        per_algorithm=_TARGET_PERIODS,
    ),
    "minatar": Preset(
        kind="board",
        source="MinAtar and other boards; memory and discount of Young & Tian (2019), budget scaled; docs/tuning.md",
        settings=_MINATAR,
        per_algorithm=_TARGET_PERIODS,
    ),
    "images": Preset(
        kind="image",
        source="images that are no Atari game: discount, returns and rewards as for vectors, nothing clipped",
        settings=_IMAGES,
        per_algorithm=_TARGET_PERIODS,
    ),
    "laptop": Preset(
        kind="atari",
        source="a smaller network and frame, for Pong on two cores in about an hour (docs/atari.md)",
        settings={
            "steps": 400_000,
            "gamma": 0.97,  # a point of Pong is decided within some 40 steps
            "n_step": 10,  # with 1 it takes three times as many updates to begin
            "reward_clip": True,
            "frame_size": (70, 54),  # at 52×40 it plays one half of the games well and loses the other
            "channels": (16, 32, 32),
            "hidden": (256,),
            "initial_weights": "pytorch",  # Q begins nearly flat: there is less for the residual part to undo
            "learning_rate": 5e-4,
            "learning_rate_decay": 0.1,
            "adam_epsilon": 1e-5,
            "batch_size": 32,
            "update_period_steps": 2,  # updates, not games, are what it waits for
            "target_period_updates": 20,  # with 250 it had not begun to learn after 72 000 updates
            "warmup_steps": 10_000,
            "memory_size": 50_000,  # some 25 games: returns over 10 steps want actions of recent policies
            "epsilon_middle": 0.03,
            "epsilon_middle_fraction": 0.08,
            "epsilon_final": 0.01,
            "epsilon_final_fraction": 0.6,
        },
    ),
    "paper-5.1": Preset(
        kind="atari",
        source="Sec. 5.1, Fig. 4",
        games=("Pong", "SpaceInvaders"),
        settings=_STANDARD,
        per_algorithm=_ADAM_EPSILON,
    ),
    "paper-5.2-half-discard": _incomplete("Fig. 5", {"discard_fraction": 0.5}),  # Sec. 5.2
    # the figure of the authors' code has DQN alone
    "paper-5.2-random-replacement": _incomplete("Fig. 6", _RANDOM_REPLACEMENT),
    "paper-5.2-small-fifo": _incomplete("Fig. 6", _SMALL_MEMORY, ("dqn",)),
    "paper-5.2-small-random-replacement": _incomplete("Fig. 6", _SMALL_MEMORY | _RANDOM_REPLACEMENT),
    "paper-5.3": Preset(
        kind="atari",
        source="Sec. 5.3, Fig. 7, Table 1",
        games=("Skiing", "Tennis", "PrivateEye", "Venture"),
        algorithms=("cdqn", "dqn"),
        seeds=3,
        settings=_AUTOMATIC,
    ),
    "paper-B.1": Preset(
        kind="vector",
        source="App. B.1, Fig. 9; authors' code where the text is silent",
        games=("cdqn/QuarticOscillator-v0",),
        algorithms=("cdqn", "dqn"),
        seeds=5,
        settings=oscillator.SETTINGS,
    ),
    "paper-B.2": Preset(
        kind="atari",
        source="App. B.2, Fig. 10",
        games=("Atlantis", "Breakout", "TimePilot", "VideoPinball", "Freeway", "FishingDerby"),
        algorithms=("cdqn", "dqn"),
        settings=_STANDARD,  # Fig. 10: "the same experimental settings as in Sec. 5.1"
        per_algorithm=_ADAM_EPSILON,
    ),
    "paper-B.3-target-2000": _target_period(2_000),
    "paper-B.3-target-200": _target_period(200),
    "paper-B.3-target-20": _target_period(20),
    "paper-B.5": Preset(
        kind="atari",
        source="App. B.5, Fig. 13",
        games=("Skiing",),
        algorithms=("cdqn",),
        seeds=3,
        settings=_AUTOMATIC | {"learning_rate": 2e-5},  # Fig. 13
    ),
    "paper-E.2-epsilon-1e-8": _priority_epsilon("1e-8"),
    "paper-E.2-epsilon-1e-6": _priority_epsilon("1e-6"),
    "paper-E.2-epsilon-1e-4": _priority_epsilon("1e-4"),
    "paper-E.3": Preset(
        kind="atari",
        source="App. E.3, Fig. 15",
        # six in Fig. 15; Breakout is the text's example of where it fails
        games=("SpaceInvaders", "Tennis", "MsPacman", "Hero", "Bowling", "Skiing", "Breakout"),
        algorithms=("cdqn",),
        settings=_AUTOMATIC | {"horizon_multiplier": 10.0},  # Fig. 15
    ),
}
DEFAULT_PRESETS: dict[Kind, str] = {
    "vector": "classic-control",
    "discrete": "tabular",
    "board": "minatar",
    "image": "images",
    "atari": "laptop",
}


def default_preset(kind: Kind) -> str:
    """The preset for a kind of environment when none is named."""
    return DEFAULT_PRESETS[kind]


def unset_for(env_id: str, preset: str) -> dict[str, None]:
    """What a preset of Atari games says of frames is not for other images."""
    return dict.fromkeys(PREPROCESSING) if get_preset(preset).kind == "atari" and not atari_game(env_id) else {}


def make_config(algorithm: str = "cdqn", preset: str | None = None, **settings: Any) -> Config:
    """The configuration for an algorithm: defaults, then the preset, then `settings`.

    What the preset says gives way to what is at odds with it in `settings`, with a warning.
    """
    known = [field.name for field in dataclasses.fields(Config)]
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise ConfigError(f"there is no setting {name!r}" + (f": did you mean {near[0]}?" if near else ""))
    chosen = {} if preset is None else get_preset(preset).settings_of(algorithm)
    values: dict[str, Any] = {"algorithm": algorithm, **chosen, **settings}
    # Two of the user's that are at odds, or two of the preset's, are an error.
    mixed = [pair[:2] for pair in at_odds(values) if (pair[0] in settings) != (pair[1] in settings)]
    losers = dict.fromkeys(name for pair in mixed for name in pair if name not in settings)
    config = Config(**{name: value for name, value in values.items() if name not in losers})
    if losers:
        winners = " and ".join(dict.fromkeys(name for pair in mixed for name in pair if name in settings))
        dropped = ", ".join(f"{name} {values[name]}" for name in losers)
        warnings.warn(f"dropped from preset {preset}: {dropped} (at odds with {winners}, which you set)", stacklevel=2)
    return config


def get_preset(name: str) -> Preset:
    """A preset by its name, or the names there are."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}: choose from {', '.join(PRESETS)}")
    return PRESETS[name]


def without_idle(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings shared by several algorithms, less those that cannot act in this one."""
    idle = find_algorithm(algorithm).all_idle_settings()
    return {name: value for name, value in settings.items() if name not in idle}
