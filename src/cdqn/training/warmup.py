"""What the rewards of the warm-up tell: γ, μ and σ (App. E.3, with the equations of `cdqn.calibration`), or a scale."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdqn.calibration import (
    Normalization,
    checked_episodes,
    counted,
    discount_for,
    normalization_from,
    reward_frequency,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Calibration(NamedTuple):
    """What was found in the first play, and how."""

    gamma: float
    mean: float
    """μ"""
    scale: float
    """σ"""
    reward_frequency: float
    """f of Alg. 1; 0 if no reward was seen"""
    episodes: int
    """complete games"""
    note: str
    """One sentence for the user."""

    @property
    def normalization(self) -> Normalization:
        return Normalization(self.mean, self.scale)


class RewardRecord:
    """The rewards of the first play, cut into what γ (`lives`) and μ, σ (`games`) are estimated from.

    An episode is complete when it has ended, by a time limit too; open ones are kept apart.
    """

    def __init__(self, num_envs: int) -> None:
        self.lives: list[Floats] = []
        self.games: list[Floats] = []
        self._open_lives: list[list[float]] = [[] for _ in range(num_envs)]
        self._open_games: list[list[float]] = [[] for _ in range(num_envs)]

    def add(
        self, reward_N: NDArray[Any], learner_done_N: Bools, game_done_N: Bools, real_N: Bools | None = None
    ) -> None:
        """One step of all environments.

        `learner_done_N`: life lost, terminated or truncated; `game_done_N`: terminated or truncated. `real_N` is
        false where a NEXT_STEP environment only reset itself: no transition, nothing is recorded.
        """
        real = [True] * len(reward_N) if real_N is None else real_N.tolist()
        rows = zip(
            reward_N.tolist(), learner_done_N.tolist(), game_done_N.tolist(), real,
            self._open_lives, self._open_games, strict=True,
        )  # fmt: skip
        for reward, life_over, game_over, is_real, life, game in rows:
            if not is_real:
                continue
            life.append(reward)
            game.append(reward)
            if life_over or game_over:
                self.lives.append(np.array(life, dtype=np.float64))
                life.clear()
            if game_over:
                self.games.append(np.array(game, dtype=np.float64))
                game.clear()

    def drop_open(self) -> None:
        """Forget the open episodes: the environments were restarted, and what follows does not belong to them."""
        for rewards in (*self._open_lives, *self._open_games):
            rewards.clear()

    def state_dict(self) -> dict[str, Any]:
        """Everything recorded, open episodes included."""
        return {
            "lives": _packed(self.lives),
            "games": _packed(self.games),
            "open_lives": _packed(self._open_lives),
            "open_games": _packed(self._open_games),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a saved record."""
        self.lives = _unpacked(state["lives"])
        self.games = _unpacked(state["games"])
        self._open_lives = [rewards.tolist() for rewards in _unpacked(state["open_lives"])]
        self._open_games = [rewards.tolist() for rewards in _unpacked(state["open_games"])]


class RewardScale:
    """The root mean square of all rewards but zeros, gathered step by step.

    Zeros are left out so that a game that rarely pays has the scale of its rewards, and not of their rarity.
    """

    def __init__(self) -> None:
        self._squares = 0.0
        self._count = 0

    def add(self, reward_N: NDArray[Any]) -> None:
        """The rewards of one step of all environments."""
        paid = np.asarray(reward_N, np.float64)
        self._squares += float(paid @ paid)
        self._count += int(np.count_nonzero(paid))

    def calibration(self, gamma: float) -> Calibration:
        """Rewards are divided by the scale, Q is not shifted, γ is as it was given."""
        scale = math.sqrt(self._squares / self._count) if self._count else 1.0
        note = f"rewards are learned divided by {scale:.4g}, their root mean square so far"
        if not self._count:
            note = "no reward has been seen so far: rewards are learned as they are"
        return Calibration(gamma, 0.0, scale, 0.0, 0, note)

    def state_dict(self) -> dict[str, Any]:
        return {"squares": self._squares, "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._squares, self._count = float(state["squares"]), int(state["count"])


def calibrate(
    record: RewardRecord, horizon_multiplier: float = 15, bounds: tuple[float, float] = (0.99, 0.9998)
) -> Calibration:
    """γ, μ and σ of a record, with a sentence that says what they rest on."""
    frequency = reward_frequency(record.lives)
    gamma = discount_for(frequency, horizon_multiplier, bounds)
    normalization, scale_note = normalization_from(checked_episodes(record.games), gamma, frequency)
    played = f"in {counted(len(record.lives), 'episode')}"
    if not record.lives:
        seen = "no episode was completed (raise warmup_steps)"
    elif frequency == 0:
        seen = f"no reward {played}"
    else:  # equidistant rewards have f = 2/(spacing + 1)
        seen = f"about {frequency / (2 - frequency):.3g} rewards per step {played}"
    # Where the bounds decide and not the rewards, the user should know.
    bound = {bounds[0]: ", the lower bound", bounds[1]: ", the upper bound"}.get(gamma, "")
    note = f"{seen}: γ = {gamma:.6g}{bound}; {scale_note}"
    return Calibration(gamma, *normalization, frequency, len(record.games), note)


def _packed(episodes: list[Floats] | list[list[float]]) -> dict[str, NDArray[Any]]:
    """Sequences of different lengths as two arrays."""
    return {
        "reward": np.array([reward for rewards in episodes for reward in rewards], dtype=np.float64),
        "length": np.array([len(rewards) for rewards in episodes], dtype=np.int64),
    }


def _unpacked(state: dict[str, NDArray[Any]]) -> list[Floats]:
    """The inverse of `_packed`."""
    return [rewards.copy() for rewards in np.split(state["reward"], np.cumsum(state["length"]))[:-1]]
