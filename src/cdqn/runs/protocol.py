"""The test protocol of App. B.4: a run's best three candidates are validated, the winner is tested.

The result is written to RUN/protocol.json; `cdqn.report.protocol` makes Table 1 of several.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdqn.agent import Agent
from cdqn.config import Config
from cdqn.errors import CheckpointError, ConfigError
from cdqn.runs.candidates import Candidate, Candidates
from cdqn.runs.loading import require_import_allowed
from cdqn.storage.checkpoint import load_checkpoint_values, newest_step, read_weights
from cdqn.storage.files import write_json, writing
from cdqn.training.events import EvaluationResult
from cdqn.training.run_config import read_run_config
from cdqn.training.seeding import TEST, VALIDATION, derived_seed, require_seed

EPISODES = 400
"""Of each validation, and of the test."""
EPSILON = 0.01
NUM_ENVS = 16
"""Environments played at once: one forward pass for all of them."""


def run_protocol(
    run: Path,
    episodes: int = EPISODES,
    epsilon: float = EPSILON,
    seed: int | None = None,
    on_begin: Callable[[int], None] = lambda total: None,
    on_episode: Callable[[], None] | None = None,
    allow_import: Iterable[str] = (),
) -> dict[str, Any]:
    """Validate the best three candidates of a run, test the winner, and write RUN/protocol.json.

    The seeds of both are functions of `seed`, by default the run's; the three are validated on the same episodes.
    `on_begin` is told how many episodes will be played. `allow_import`: as in `cdqn.load`.
    """
    _check(episodes, epsilon, seed)
    env_id, config = _read_config(run, allow_import)
    ranking, weights = _finalists(run, config)
    agent = Agent.from_config(env_id, replace(config, memory_size=config.batch_size))  # it will not learn
    # Two seeds of one: the test must not repeat the episodes by which the winner was chosen.
    base_seed = config.seed if seed is None else seed
    validation_seed, test_seed = derived_seed(base_seed, VALIDATION), derived_seed(base_seed, TEST)

    def play(index: int, episodes_seed: int) -> EvaluationResult:
        agent.weights = weights[index]
        return agent.evaluate(episodes, epsilon, episodes_seed, on_episode=on_episode, num_envs=NUM_ENVS)

    on_begin(episodes * (len(ranking) + 1))
    validations = [play(index, validation_seed) for index in range(len(ranking))]
    winner = int(np.argmax([result.mean for result in validations]))
    test = play(winner, test_seed)
    content: dict[str, Any] = {
        "env_id": env_id,
        "sticky_actions": agent.config.sticky_actions,
        "algorithm": config.algorithm,
        "seed": config.seed,
        "steps": newest_step(run),
        "budget_steps": config.steps,
        "episodes": episodes,
        "epsilon": epsilon,
        "candidates": list(map(_candidate_summary, ranking, validations, repeat(validation_seed))),
        "winner_step": ranking[winner].step,
        "test": _summary(test, test_seed),
    }
    return _written(run, content)


def _check(episodes: int, epsilon: float, seed: int | None) -> None:
    if episodes < 1 or not 0 <= epsilon <= 1:
        raise ConfigError(f"the protocol was asked for {episodes} episodes with ε {epsilon}: ≥ 1 and within [0, 1]")
    require_seed(seed)


def _written(run: Path, content: dict[str, Any]) -> dict[str, Any]:
    with writing(run):
        write_json(run / "protocol.json", content)
    return content


def _read_config(run: Path, allow_import: Iterable[str]) -> tuple[str, Config]:
    env_id, config = read_run_config(run, allow_import)
    if env_id is None:
        raise CheckpointError(f"{run} was trained on an environment object: the protocol needs an environment's id")
    require_import_allowed(run, env_id, allow_import)
    return env_id, config


def _finalists(run: Path, config: Config) -> tuple[list[Candidate], list[NDArray[np.float32]]]:
    """The best three candidates, and their weights."""
    if config.candidate_period_steps is None:
        raise CheckpointError(
            f"{run} kept no candidates for the test: train with --candidate-period-steps 10000 (App. B.4)"
        )
    candidates = Candidates(run, config.num_envs)
    if (state := load_checkpoint_values(run).get("candidates")) is not None:
        candidates.load_state_dict(state)
    ranking = candidates.ranking()
    if not ranking:
        raise CheckpointError(
            f"{run} has no candidate yet: with candidate_period_steps {config.candidate_period_steps} the first comes "
            f"after warmup_steps {config.warmup_steps}, the run is at step {newest_step(run)}; train it further"
        )
    return ranking, [read_weights(candidates.path(candidate.step)) for candidate in ranking]


def _candidate_summary(candidate: Candidate, validation: EvaluationResult, seed: int) -> dict[str, Any]:
    return {
        "step": candidate.step,
        "training_score": candidate.score if candidate.episodes else None,
        "training_episodes": len(candidate.episodes),
        "validation": _summary(validation, seed),
    }


def _summary(result: EvaluationResult, seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "mean": result.mean,
        "stderr": result.stderr if len(result.returns) > 1 else None,
        "returns": result.returns.tolist(),
        "lengths": result.lengths.tolist(),
    }
