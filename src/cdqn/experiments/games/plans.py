"""Which runs a figure of games is made of, at each scale.

"paper" is the published configuration, out of the presets. "laptop" shows the same on MinAtar's games, which have the
rules of their namesakes on a board of 10×10, and on small tasks: what takes days on a GPU takes a minute or two on a
core. "smoke" is a few hundred steps of that.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

from cdqn.config import Config
from cdqn.presets import get_preset, make_config, without_idle


class Line(NamedTuple):
    """One curve of a figure: its runs differ in their seeds."""

    group: str
    """Runs of one group are shared by all figures that ask for them."""
    game: str
    """As a reader knows it."""
    env_id: str
    preset: str
    algorithm: str
    variant: str
    """In what it differs from other curves of this algorithm on this game; empty if in nothing."""
    settings: Mapping[str, Any] = {}

    def config(self, seed: int) -> Config:
        """The settings of one run."""
        acting = without_idle(self.algorithm, self.settings)
        return make_config(self.algorithm, self.preset, **acting, seed=seed).resolved()

    def run_name(self, seed: int) -> str:
        """Where the run lies in the folder of its scale."""
        words = [self.algorithm, *self.variant.split()]
        return f"{self.group}/{self.game}/{'-'.join(words)}-seed{seed}"


class GamesFigure(NamedTuple):
    """A figure, and the runs that it shows."""

    presets: Mapping[str, str]
    """What the paper ran: presets, by what distinguishes their curves in the figure."""
    laptop: tuple[Line, ...]
    laptop_seeds: int = 3
    shown: tuple[tuple[str, str], ...] = ()
    """Game and algorithm of what the figure shows of its presets; empty: everything."""

    def lines(self, scale: str) -> tuple[Line, ...]:
        """The curves of the figure."""
        if scale == "paper":
            return tuple(line for line in _published(self.presets) if self._shows(line))
        return self.laptop if scale == "laptop" else tuple(_tiny(line) for line in self.laptop)

    def seeds(self, scale: str) -> int:
        """How many runs a curve has."""
        if scale == "paper":
            return max(get_preset(name).seeds for name in self.presets.values())
        return self.laptop_seeds if scale == "laptop" else 1

    def _shows(self, line: Line) -> bool:
        return not self.shown or (line.game, line.algorithm) in self.shown


def _published(presets: Mapping[str, str]) -> Iterable[Line]:
    for variant, name in presets.items():
        preset = get_preset(name)
        for game, algorithm in product(preset.games, preset.algorithms):
            yield Line(name, game, game, name, algorithm, variant)


SMOKE = {
    "steps": 400,
    "warmup_steps": 150,
    "hidden": (8,),
    "memory_size": 300,
    "log_period_steps": 50,
    "candidate_period_steps": 100,
    "evaluation_episodes": 1,
    "compile": "off",
}


SMOKE_OF_VECTORS = SMOKE | {"steps": 2_200, "update_period_steps": 8, "log_period_steps": 200}
"""Four episodes of 500 steps."""


def _tiny(line: Line) -> Line:
    smoke = SMOKE_OF_VECTORS if line.preset == "classic-control" else SMOKE
    return line._replace(settings={**line.settings, **smoke})


# Stand-ins ----------------------------------------------------------------------------------------------

_RUN = {"steps": 30_000, "log_period_steps": 500, "candidate_period_steps": 1_000, "evaluation_episodes": 20}
_AS_PUBLISHED = {
    # What the paper's agents do and our defaults for MinAtar do not.
    "n_step": 1,
    "exploration": "epsilon",
    "learning_rate_decay": 1.0,
}
_COMPLETE = _RUN | _AS_PUBLISHED | {"target_period_updates": 100}
"""Sec. 5.1: everything is stored, and the target network is copied seldom enough for DQN."""
_UNSTABLE = (
    _RUN
    | _AS_PUBLISHED
    | {
        # A target network that is copied often takes here the place of the paper's tens of millions of steps, and a
        # discount of 0.999 that of its longer games.
        "gamma": 0.999,
        "target_period_updates": 20,
        "loss": "mse",  # Sec. 5.2
        "raise_predecessor": False,  # App. E.2
        "double_q": False,
        "gradient_clip_norm": math.inf,
        "adam_epsilon": 1e-8,
    }
)
_AUTOMATIC = (
    _RUN
    | _AS_PUBLISHED
    | {
        # Sec. 5.3 and App. E, but for the step size, which suits MinAtar's small network.
        "horizon_multiplier": 15.0,
        "value_transform": True,
        "adam_epsilon": 1e-6,
        "gradient_clip_norm": 5.0,
        "alpha": 0.9,
        "initial_priority": 100**0.9,
        "learning_rate": 5e-4,
        "target_period_updates": 20,
        "warmup_steps": 5_000,
        "normalize_rewards": False,
    }
)


_SMALL_TASKS = _AUTOMATIC | {"steps": 50_000}
_STAND_INS = {
    "MountainCar": ("MountainCar-v0", "classic-control"),
    "Acrobot": ("Acrobot-v1", "classic-control"),
}
"""For games whose reward is seldom, and far from what earns it: no reward of these tells a good action from another
until the goal has been found, a hundred actions away."""


def _lines(
    group: str, games: Iterable[str], algorithms: Iterable[str], variants: Mapping[str, Mapping[str, Any]]
) -> tuple[Line, ...]:
    return tuple(
        Line(group, game, *_STAND_INS.get(game, (f"MinAtar/{game}-v1", "minatar")), algorithm, variant, settings)
        for (variant, settings), game, algorithm in product(variants.items(), games, algorithms)
    )


_DIFFICULT = _lines("fig7", tuple(_STAND_INS), ("cdqn", "dqn"), {"": _SMALL_TASKS})
_RANDOM = {"eviction": "random"}

FIGURES: dict[str, GamesFigure] = {
    "fig4": GamesFigure(
        {"": "paper-5.1"},
        _lines("fig4", ("Breakout", "SpaceInvaders"), ("cdqn", "dqn", "rg"), {"": _COMPLETE}),
        laptop_seeds=5,
    ),
    "fig5": GamesFigure(
        {"": "paper-5.2-half-discard"},
        _lines("fig5", ("SpaceInvaders",), ("cdqn", "dqn"), {"": _UNSTABLE | {"discard_fraction": 0.5}}),
        laptop_seeds=5,
    ),
    "fig6": GamesFigure(
        {
            "random": "paper-5.2-random-replacement",
            "small fifo": "paper-5.2-small-fifo",
            "small random": "paper-5.2-small-random-replacement",
        },
        (
            *_lines(
                "fig6", ("SpaceInvaders",), ("cdqn", "dqn"), {"random": _UNSTABLE | _RANDOM | {"memory_size": 10_000}}
            ),
            *_lines("fig6", ("SpaceInvaders",), ("dqn",), {"small fifo": _UNSTABLE | {"memory_size": 1_000}}),
            *_lines(
                "fig6",
                ("SpaceInvaders",),
                ("cdqn", "dqn"),
                {"small random": _UNSTABLE | _RANDOM | {"memory_size": 1_000}},
            ),
        ),
    ),
    "fig7": GamesFigure({"": "paper-5.3"}, _DIFFICULT),
    "fig10": GamesFigure(
        {"": "paper-B.2"},
        _lines("fig10", ("Asterix", "Freeway", "Seaquest"), ("cdqn", "dqn"), {"": _COMPLETE}),
    ),
    "fig11": GamesFigure(
        {
            "period 2000": "paper-B.3-target-2000",
            "period 200": "paper-B.3-target-200",
            "period 20": "paper-B.3-target-20",
        },
        _lines(
            "fig11",
            ("SpaceInvaders",),
            ("cdqn", "dqn"),
            {f"period {period}": _COMPLETE | {"target_period_updates": period} for period in (500, 50, 5)},
        ),
    ),
    "fig13": GamesFigure(
        {"": "paper-5.3", "lr 2e-5": "paper-B.5"},
        (
            *_lines("fig7", ("MountainCar",), ("cdqn",), {"": _SMALL_TASKS}),
            *_lines("fig13", ("MountainCar",), ("cdqn",), {"half lr": _SMALL_TASKS | {"learning_rate": 2.5e-4}}),
        ),
        shown=(("Skiing", "cdqn"),),
    ),
    "fig14": GamesFigure(
        {f"ε_p {epsilon}": f"paper-E.2-epsilon-{epsilon}" for epsilon in ("1e-8", "1e-6", "1e-4")},
        _lines(
            "fig14",
            ("SpaceInvaders",),
            ("dqn",),
            {
                f"ε_p {epsilon}": _COMPLETE
                | {"priority_scheme": "original", "raise_predecessor": False, "priority_epsilon": float(epsilon)}
                for epsilon in ("1e-8", "1e-6", "1e-4")
            },
        ),
    ),
    "fig15": GamesFigure(
        {"": "paper-E.3"},
        _lines(
            "fig15",
            ("SpaceInvaders", "Freeway", "Asterix", "Breakout"),
            ("cdqn",),
            {"": _AUTOMATIC | {"horizon_multiplier": 10.0}},
        ),
    ),
    "table1": GamesFigure({"": "paper-5.3"}, _DIFFICULT),
}
