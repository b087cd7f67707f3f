"""Agents: what a user holds in ten lines of Python.

agent = cdqn.CDQN("CartPole-v1", seed=0)
agent.learn(50_000)
print(agent.evaluate(episodes=20))
agent.save("runs/a")
agent = cdqn.load("runs/a")        # resumes exactly where it stopped
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from cdqn import algorithms
from cdqn.algorithms import Algorithm
from cdqn.callbacks import Callback
from cdqn.config import PREPROCESSING, Config
from cdqn.envs import (
    DATA_ENV,
    EnvLike,
    atari_game,
    default_preprocessing,
    describe,
    kind_of,
    let_go,
    make_vec,
    observation_adapter,
    require_kind,
)
from cdqn.envs.data import NOT_PLAYED
from cdqn.envs.evaluation import OBSERVATION, another_like, carries, evaluating, statistics_of
from cdqn.envs.observations import agent_batch
from cdqn.errors import ConfigError, UnsupportedEnvironmentError
from cdqn.presets import default_preset, get_preset, make_config
from cdqn.storage.named_code import import_pieces, named_wrappers
from cdqn.training.build import MAKING, how_to_make, notices_of, require_acting
from cdqn.training.evaluation import evaluate
from cdqn.training.events import EvaluationResult, Row
from cdqn.training.offline.trainer import OfflineTrainer
from cdqn.training.q_module import QModule, export
from cdqn.training.saving import Saving
from cdqn.training.seeding import EVALUATION, derived_seed, require_seed
from cdqn.training.settings import Settings
from cdqn.training.trainer import Trainer

Schedules = Literal["continue", "restart"]
"""What becomes of ε, β and the step size in a `learn` that is not the first."""


class Agent(Saving):
    """An algorithm on an environment: an id, a Gymnasium Env, or a VectorEnv.

    `settings` are the fields of `cdqn.config.Config`; `preset` names a set of them, and is by default the one
    for the environment's kind (classic control, MinAtar, or Atari on a laptop). The budget of the schedules of
    ε and β is `steps` where it is given, else the length of the first `learn`.
    """

    algorithm: ClassVar[str]
    _learn: ClassVar[Callable[..., None]]
    _fit: ClassVar[Callable[..., "Agent"]]
    """`learn` and `fit` of `cdqn.runs`, which knows run folders and screens: they know agents, and tell this one."""
    for_run_folders: Sequence[str] = ()
    """Settings that were given, and act on run folders alone."""
    only_plays = False
    """Whether it has the policy of another step than its own, and must not learn on."""
    data: str | None = None
    """Where the data was from that it learns from, if it learns from fixed data alone: a step is an update then."""

    def __init__(
        self,
        env: EnvLike,
        *,
        algorithm: str | type[Algorithm] | None = None,
        preset: str | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        chosen = self.choose(algorithm)
        given: dict[str, Any] = dict(settings)
        self.for_run_folders = [name for name in ACT_ON_FOLDERS if given.get(name) is not None]
        import_pieces(given)  # whoever has typed a name in Python means it
        making = make_config(chosen, None, **{name: given[name] for name in MAKING if name in given})
        preset = preset or default_preset(kind_of(env, making.environment_kwargs, named_wrappers(making.wrapper)))
        if atari_game(env) is None:  # a preset's frames are for games that are made by name
            given = dict.fromkeys(PREPROCESSING) | given
        self._prepare(env, make_config(chosen, preset, **given), preset, settings)
        if "steps" in given:
            self.trainer.settle_budget(self.config.steps)

    @classmethod
    def choose(cls, algorithm: str | type[Algorithm] | None) -> str:
        """The name of the class's own algorithm, or of the one that was given."""
        if (algorithm is None) != hasattr(cls, "algorithm"):
            names = ", ".join(f"cdqn.{agent.__name__}" for agent in AGENTS.values())
            raise ConfigError(
                f"which algorithm? Use one of {names}, without the setting algorithm, or cdqn.Agent(env, algorithm=...)"
            )
        return algorithms.known_name(cls.algorithm if algorithm is None else algorithm)

    @classmethod
    def from_config(cls, env: EnvLike, config: Config, preset: str | None = None, data: str | None = None) -> "Agent":
        """The agent that a configuration describes; with `data`, the name of fixed data, it learns from that alone."""
        agent_class = AGENTS.get(config.algorithm, Agent)
        agent = agent_class.__new__(agent_class)
        agent.data = data
        agent._prepare(env, config, preset)
        agent.trainer.settle_budget(config.steps)
        return agent

    def _prepare(
        self, env: EnvLike, config: Config, preset: str | None = None, given: Mapping[str, Any] | None = None
    ) -> None:
        self._env = env
        self.env_id = env if isinstance(env, str) else None
        config = config.filled(default_preprocessing(env))
        is_game = atari_game(env) is not None
        vector_env = make_vec(env, config.num_envs, **how_to_make(env, config))
        self.spec = describe(vector_env)
        self._adapter = observation_adapter(vector_env)
        for notice in notices_of(vector_env):
            warnings.warn(notice, stacklevel=3)
        if preset is not None:
            require_kind(get_preset(preset).kind, self.spec, preset)
        if config.preprocessing and not is_game:
            names = ", ".join(config.preprocessing)
            raise ConfigError(f"{names}: settings of Atari games, made by their name; drop them for this environment")
        if vector_env.num_envs != config.num_envs:
            if "num_envs" in (given or {}):
                raise ConfigError(
                    f"num_envs is {config.num_envs}, and the environment that was given is {vector_env.num_envs} in "
                    "number: drop the setting, or give an id, of which cdqn makes as many"
                )
            config = dataclasses.replace(config, num_envs=vector_env.num_envs)
        require_acting(given or (), self.spec, config)
        self.config = config.resolved()
        trainer_class = Trainer if self.data is None else OfflineTrainer
        self.trainer = trainer_class(vector_env, self.spec, self.config)
        self.history: list[Row] = []

    @property
    def steps(self) -> int:
        """Agent steps trained so far."""
        return self.trainer.steps

    @property
    def has_environment(self) -> bool:
        """Whether there is one to play; data may come without."""
        return self.env_id != DATA_ENV

    @property
    def weights(self) -> NDArray[np.float32]:
        """θ, all parameters of the online network in one vector; a copy. Give it another to play with that."""
        theta: NDArray[np.float32] = self.trainer.learner.theta.detach().cpu().numpy().copy()
        return theta

    @weights.setter
    def weights(self, theta: NDArray[np.float32]) -> None:
        mine = self.trainer.learner.theta
        if theta.shape != tuple(mine.shape):
            raise ConfigError(f"weights of shape {theta.shape} do not fit this network: it has {mine.numel()}")
        mine.copy_(torch.from_numpy(theta))

    def learn(
        self,
        steps: int,
        callbacks: Callback | Sequence[Callback] = (),
        *,
        progress: bool = False,
        run_folder: str | Path | None = None,
        evaluation_env: EnvLike | None = None,
        schedules: Schedules | None = None,
    ) -> Self:
        """Train for `steps` more steps, less if a callback returns False or calls `stop`.

        Callbacks are called with each event and the agent (`cdqn.callbacks`). Rows of metrics gather in `history`; what
        the run warns of, divergence above all, is a Python warning. `progress` shows a live bar.

        In a `run_folder` all is as `cdqn train` has it: checkpoints, metrics.jsonl, a final evaluation, the policy of
        the best one; `cdqn resume` goes on from there. It is new, or the one that this agent was trained in or loaded
        from. `evaluation_env` is played in evaluations, by default another like that of the training.

        `schedules`: ε, β and the step size "continue" to the end of the budget and stay there, or "restart" over these
        steps, without a random phase. Unset, they continue, and a warning says so where they have ended.
        """
        self._learn(steps, callbacks, progress, run_folder, evaluation_env, schedules)
        return self

    @classmethod
    def fit(
        cls,
        data: Any,
        env: EnvLike | None = None,
        *,
        updates: int | None = None,
        epochs: float | None = None,
        callbacks: Callback | Sequence[Callback] = (),
        progress: bool = False,
        run_folder: str | Path | None = None,
        allow_import: str | Iterable[str] = (),
        algorithm: str | type[Algorithm] | None = None,
        preset: str | None = None,
        **settings: Unpack[Settings],
    ) -> "Agent":
        """A new agent, trained on fixed data alone: for `updates`, or `epochs` times as many rows as there are.

        `data` is a mapping of arrays (observations, actions, rewards, next_observations, terminations and, where
        episodes were cut off, truncations), an .npz file of them, a data set of Minari's or the name of one, or a run
        folder, of which it takes the replay memory. `env` is played in evaluations, by default the one that the data is
        from where that is known; without any, nothing is evaluated. A step is an update; `learn` goes on with the same
        data. `callbacks`, `progress` and `run_folder` are as in `learn`, `allow_import` as in `cdqn.load`.
        """
        watching = {"callbacks": callbacks, "progress": progress, "run_folder": run_folder}
        chosen = {"algorithm": cls.choose(algorithm), "preset": preset, "given": dict(settings)}
        return cls._fit(data, env, updates, epochs, allow_import=allow_import, **watching, **chosen)

    def stop(self) -> None:
        """End the training under way after the step at hand; for callbacks."""
        self.trainer.stop()

    def evaluate(
        self,
        episodes: int | None = None,
        epsilon: float = 0.0,
        seed: int | None = None,
        env: EnvLike | None = None,
        on_episode: Callable[[], None] | None = None,
        num_envs: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> EvaluationResult:
        """Play whole episodes with the present policy, by default `evaluation_episodes`, in environments of their own.

        The seed is by default a function of the agent's, so that two evaluations see the same episodes.
        There are as many environments as in training, or `num_envs`; with another number the episodes differ.
        `StoppedError` as soon as `should_stop` is true between two steps.
        """
        episodes = self.config.evaluation_episodes if episodes is None else episodes
        if episodes < 1 or not 0 <= epsilon <= 1:
            raise ConfigError(f"evaluate was asked for {episodes} episodes with ε {epsilon}: ≥ 1 and within [0, 1]")
        require_seed(seed)
        seed = derived_seed(self.config.seed, EVALUATION) if seed is None else seed
        vector_env = self.evaluation_environments(env, min(num_envs or self.config.num_envs, episodes))
        try:
            with evaluating(vector_env, statistics_of(self.trainer.collector.env)):
                return evaluate(
                    self.trainer.actor,
                    vector_env,
                    self.spec,
                    episodes,
                    seed=seed,
                    epsilon=epsilon,
                    on_episode=on_episode,
                    should_stop=should_stop,
                    timeout_seconds=self.config.environment_timeout_seconds,
                )
        finally:
            let_go(vector_env, env)

    def evaluation_environments(self, env: EnvLike | None, count: int = 1) -> VectorEnv[Any, Any, Any]:
        """Environments in which evaluations can be played: of `env`, or others like that of the training."""
        if env is None and not self.has_environment:
            raise UnsupportedEnvironmentError(NOT_PLAYED)
        making = how_to_make(self._env, self.config) if env is None else {}
        if env is not None and atari_game(env):
            making = {"preprocessing": self.config.preprocessing}
        if env is not None and env is self._env and not isinstance(env, str):
            raise ConfigError("the evaluation environment is the one that is trained on: give another, made like it")
        vector_env = make_vec(another_like(self._env) if env is None else env, count, **making)
        if (found := describe(vector_env)) != self.spec:
            raise ConfigError(f"the evaluation environment has {found}, the agent was trained on {self.spec}")
        return vector_env

    def predict(self, observation: Any) -> Any:
        """Greedy action for one observation, or for an array of them; of the environment's own, as it returns them."""
        batch, is_single = agent_batch("predict", observation, self.spec, self._adapter)
        action_N = self.trainer.actor.greedy(batch) + self.spec.first_action
        return int(action_N[0]) if is_single else action_N

    def q_values(self, observation: Any) -> NDArray[np.float32]:
        """Q of each action, in units of the rewards: for one observation, or for each of several, as in `predict`."""
        batch, is_single = agent_batch("q_values", observation, self.spec, self._adapter)
        q_NA = self.trainer.q_values(batch)
        return q_NA[0] if is_single else q_NA

    def q_module(self) -> QModule:
        """`q_values` as a module of PyTorch, a copy that later training does not change: for use without cdqn."""
        return QModule(self.trainer, self._adapter)

    def export(self, path: str | Path) -> Path:
        """Write `q_module` to a file: .onnx for ONNX (extra `[export]`), .pt for TorchScript.

        The input is `observation`, a batch of any length as the environment returns them, the output `q_values`.
        """
        return export(self.q_module(), Path(path))

    def settle_budget(self, budget_steps: int) -> None:
        """Let the schedules run up to this step, and say so in `config`."""
        self.trainer.settle_budget(budget_steps)
        self.config = dataclasses.replace(self.config, steps=budget_steps)

    def play_as(self, policy: Mapping[str, NDArray[Any]], step: int) -> None:
        """Take over the policy of a step of this run, to play and not to learn."""
        if carries(self.trainer.collector.env, OBSERVATION):
            raise ConfigError(
                f"what {OBSERVATION} had learned at step {step} was not kept with the best policy: "
                "play the newest one, or train with normalize_observations=True instead"
            )
        self.trainer.load_policy_state(policy)
        self.trainer.collector.steps = step
        self.only_plays = True


ACT_ON_FOLDERS = ("checkpoint_period_steps", "candidate_period_steps")
"""Settings that mean nothing where there is no run folder."""


class CDQN(Agent):
    __doc__ = algorithms.CDQN.__doc__
    algorithm = algorithms.CDQN.name


class DCDQN(Agent):
    __doc__ = algorithms.DCDQN.__doc__
    algorithm = algorithms.DCDQN.name


class DQN(Agent):
    __doc__ = algorithms.DQN.__doc__
    algorithm = algorithms.DQN.name


class ResidualGradient(Agent):
    __doc__ = algorithms.RG.__doc__
    algorithm = algorithms.RG.name


AGENTS: dict[str, type[Agent]] = {agent.algorithm: agent for agent in (CDQN, DCDQN, DQN, ResidualGradient)}
