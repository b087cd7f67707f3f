"""Candidates for the final test of a run (App. B.4): the weights θ that did best while training.

    RUN/candidates/step-000050000.safetensors    θ at that step

The score of a candidate is the mean over the 40 training episodes nearest to it. An episode lies at its middle,
halfway between the run's step at its beginning and at its end; of two as near, the one that ended first counts.
So a score is known only some time later: a candidate is *settled* once no episode that ends from now on can be
among its 40 nearest. Kept are the best three of the settled ones, and all that are not settled yet.

The bookkeeping is part of each checkpoint (`cdqn.runs.policy_files`).
"""

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdqn.agent import Agent
from cdqn.callbacks import Every
from cdqn.errors import CheckpointError
from cdqn.runs.policy_files import PolicyFiles
from cdqn.storage.checkpoint import State
from cdqn.training.events import Episode, Event, Progress

NEAREST_EPISODES = 40
"""Training episodes behind the score of a candidate (App. B.4)."""
KEPT = 3
"""Candidates that come to the validation (App. B.4)."""


class Played(NamedTuple):
    """A training episode, as a candidate sees it."""

    middle_step: float
    score: float


@dataclass
class Candidate:
    """Weights that may be among the best, and the episodes around them."""

    step: int
    episodes: list[Played] = field(default_factory=list)
    """The nearest ones so far, the nearest first."""
    settled: bool = False

    def distance(self, episode: Played) -> float:
        return abs(episode.middle_step - self.step)

    def add(self, episode: Played) -> None:
        """Count an episode that ended after all others, if it is near enough."""
        insort(self.episodes, episode, key=self.distance)
        del self.episodes[NEAREST_EPISODES:]

    def settles(self, earliest_middle: float) -> bool:
        """Whether no episode with its middle after `earliest_middle` can be among the nearest."""
        if len(self.episodes) < NEAREST_EPISODES:
            return False
        return self.distance(self.episodes[-1]) <= earliest_middle - self.step

    @property
    def score(self) -> float:
        """Mean over the nearest episodes; -inf where not one has ended."""
        scores = [episode.score for episode in self.episodes]
        return math.fsum(scores) / len(scores) if scores else -math.inf


def best(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The best three by their scores, the best first; of equals the earlier."""
    return sorted(candidates, key=lambda candidate: (-candidate.score, candidate.step))[:KEPT]


class Candidates:
    """The candidates of one run, and its training episodes as far as they may still count."""

    def __init__(self, run: Path, num_envs: int) -> None:
        self._files = PolicyFiles(run / "candidates")
        self._num_envs = num_envs
        self._ended_at = [0] * num_envs
        self._latest: list[Played] = []
        self._candidates: list[Candidate] = []

    def add_episode(self, episode: Episode) -> None:
        """Take note of a training episode, in the order in which they end."""
        # One environment in N makes one of N steps. Where that is not quite so, because environments pause
        # to reset themselves, an episode begins no earlier than the one before it ended.
        begin = max(episode.step - episode.length * self._num_envs, self._ended_at[episode.env])
        self._ended_at[episode.env] = episode.step
        played = Played((begin + episode.step) / 2, episode.total_reward)
        for candidate in self._candidates:
            if not candidate.settled:
                candidate.add(played)
        # A candidate to come lies after every middle so far: nearest to it are the latest.
        insort(self._latest, played, key=lambda other: -other.middle_step)
        del self._latest[NEAREST_EPISODES:]

    def add(self, step: int, theta: NDArray[np.float32]) -> None:
        """A new candidate: the weights at the run's present step."""
        self._files.add(step, {"theta": theta})
        self._candidates.append(Candidate(step, list(self._latest)))

    def settle(self, step: int) -> None:
        """Find the candidates that are settled at the run's present step, and give up those that cannot win."""
        # An open episode began no earlier than the last one of its environment ended, and it ends after now.
        earliest_middle = (min(self._ended_at) + step) / 2
        for candidate in self._candidates:
            candidate.settled = candidate.settled or candidate.settles(earliest_middle)
        kept = [candidate.step for candidate in best(c for c in self._candidates if c.settled)]
        self._candidates = [c for c in self._candidates if not c.settled or c.step in kept]

    def ranking(self) -> list[Candidate]:
        """The best three by the episodes so far, as if no other came."""
        return best(self._candidates)

    def path(self, step: int) -> Path:
        """The file with the weights of that step."""
        return self._files.path(step)

    def prune(self) -> None:
        """Delete the files that no checkpoint counts on any more; only after a checkpoint."""
        self._files.prune(candidate.step for candidate in self._candidates)

    def state_dict(self) -> State:
        """The bookkeeping; the weights are in their files."""
        return {
            "ended_at": list(self._ended_at),
            "latest": [list(episode) for episode in self._latest],
            "candidates": [
                {"step": c.step, "settled": c.settled, "episodes": [list(episode) for episode in c.episodes]}
                for c in self._candidates
            ],
        }

    def load_state_dict(self, state: State) -> None:
        """Take over what `state_dict` gave."""
        try:
            self._ended_at = list(state["ended_at"])
            self._latest = _played(state["latest"])
            self._candidates = [
                Candidate(entry["step"], _played(entry["episodes"]), entry["settled"]) for entry in state["candidates"]
            ]
            self._files.count_on(candidate.step for candidate in self._candidates)
        except (LookupError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"the candidates in the checkpoint of {self._files.folder} are damaged: {error!r}"
            ) from error


class KeepCandidates:
    """The callback that makes candidates at regular steps, and takes note of the episodes around them."""

    def __init__(self, agent: Agent, candidates: Candidates) -> None:
        self._due = Every(agent.config.candidate_period_steps, agent)
        self._candidates = candidates

    def __call__(self, event: Event, agent: Agent) -> None:
        if isinstance(event, Episode):
            self._candidates.add_episode(event)
        elif isinstance(event, Progress):
            if self._due(event.step) and event.update > 0:
                self._candidates.add(event.step, agent.weights)
            self._candidates.settle(event.step)


def _played(pairs: list[Any]) -> list[Played]:
    return [Played(*pair) for pair in pairs]
