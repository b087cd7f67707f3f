"""The trainer: the only place where environment, memory and learner meet.

    env ─► collector ─► multi_step ─► replay.add   replay.sample ─► learner.update ─► |δ| ─► replay.update_priorities
             ▲ actions                                                    │
             └────────────────── actor ◄── online weights ────────────────┘

A *step* is one decision of the agent in one environment; N interleaved environments make N steps at a
time. An *update* is one step of the optimizer; there is one for every `update_period_steps` steps.

`run` is a generator of events. Printing, logging, checkpointing, evaluation are its consumers, and it is
between two steps, in a state that can be saved, whenever it yields.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from cdqn.config import Config
from cdqn.envs import EnvSpec
from cdqn.envs.evaluation import evaluating, restore_statistics, statistics_of
from cdqn.errors import NonFiniteError
from cdqn.replay import MultiStep, Prefetcher, UniformReplay
from cdqn.schedules import dropped, epsilon_greedy, importance_exponent, linear
from cdqn.training.actor import Actor
from cdqn.training.build import make_learner, make_replay
from cdqn.training.calibrator import Calibrator
from cdqn.training.collector import Collector
from cdqn.training.divergence import Watch
from cdqn.training.events import Event, Progress
from cdqn.training.exploration import make_exploration
from cdqn.training.metrics import Tally
from cdqn.training.normalizer import make_normalizer
from cdqn.training.seeding import EXPLORATION, REPLAY, generator


class Trainer:
    """One run in memory: give it a vector environment and a configuration, and iterate over `run`."""

    def __init__(self, env: VectorEnv[Any, Any, Any], spec: EnvSpec, config: Config) -> None:
        self.config = config = config.resolved()
        self.spec = spec
        self.budget_steps: int | None = None
        """The step at which the schedules of ε, β and the step size end."""
        self.schedule_start = 0
        """The step at which they began."""
        self._rng = generator(config.seed, EXPLORATION)
        self.normalizer = make_normalizer(env, spec, config)
        self.learner = make_learner(spec, config)
        self.actor = Actor(self.learner, self.normalizer)
        self.exploration = make_exploration(config.exploration, spec.num_actions, env.num_envs)
        self.replay = make_replay(spec, config, generator(config.seed, REPLAY))
        self._multi_step = MultiStep(config.n_step, config.gamma or 0.0)  # where γ is found later, n is 1
        # A memory of somebody else's may not be made to be drawn from in another thread.
        ours = self.replay if isinstance(self.replay, UniformReplay) else None
        self._prefetcher = Prefetcher(ours) if ours is not None and spec.has_frames else None
        self.collector = self._make_collector(env)
        self.calibrator = Calibrator(
            env.num_envs, config.warmup_steps, config.gamma, config.horizon_multiplier, config.normalize_rewards
        )
        self.tally = Tally()
        self.watch = Watch(config, env.num_envs)
        self._stop_requested = False

    def _make_collector(self, env: VectorEnv[Any, Any, Any]) -> Collector:
        config = self.config
        return Collector(env, self.spec, config.seed, config.reward_clip, config.environment_timeout_seconds)

    @property
    def steps(self) -> int:
        """Agent steps so far."""
        return self.collector.steps

    def settle_budget(self, budget_steps: int) -> None:
        """Fix the budget of the schedules, and with it how updates are run; `run` does so if nobody has."""
        self.budget_steps = budget_steps
        self.learner.choose_backend(self._updates_due(budget_steps))

    def restart_schedules(self, until_step: int) -> None:
        """Run ε, β and the step size anew, from here to `until_step`; how updates are run was settled once for all."""
        self.schedule_start, self.budget_steps = self.steps, until_step

    def stop(self) -> None:
        """Ask `run` to end after the step at hand."""
        self._stop_requested = True

    def run(self, until_step: int, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Train up to `until_step`, or until `should_stop` is true between two steps, yielding what happens."""
        if self.budget_steps is None:
            self.settle_budget(until_step)
        self._stop_requested = False
        clock, clock_step = time.perf_counter(), self.steps
        while self.steps < until_step and not self._stop_requested and not should_stop():
            step_before = self.steps
            yield from self._advance()
            period = self.config.log_period_steps
            if self.steps // period > step_before // period:
                now = time.perf_counter()
                progress = self._progress((self.steps - clock_step) / (now - clock))
                clock, clock_step = now, self.steps
                # The warnings first: whoever saves at `Progress` has then seen all of this step.
                yield from self.watch.check(progress, self.calibrator.unit, self._budget())
                yield progress

    def _advance(self) -> list[Event]:
        """One step of each environment and the updates that are due by then; what there is to tell of them."""
        actions = self.exploration.act(self.actor.greedy, self.collector.observation, self.epsilon(), self._rng)
        if self._prefetcher is not None and self._will_learn(self.steps + len(actions)):
            self._prefetcher.request(self.config.batch_size, self.beta())  # while the environments are stepped
        transitions, episodes, ended = self.collector.step(actions)
        if self.normalizer is not None:
            self.normalizer.observe(transitions.observation)
        calibrated = self.calibrator.observe(self.steps, transitions, ended)
        self.watch.observe(transitions, ended, self.calibrator.gamma)
        self._learn()  # first: what has been drawn while the environments were stepped must not be overwritten
        self.replay.add(self._multi_step.extend(transitions))
        self.tally.reward_abs_max = max(self.tally.reward_abs_max, *map(abs, transitions.reward.tolist()), 0.0)
        for episode in episodes:
            self.tally.add_episode(episode)
        return [*([calibrated] if calibrated else []), *episodes]

    def q_values(self, observation: NDArray[Any]) -> NDArray[Any]:
        """Q of each action, in units of the rewards."""
        return self.calibrator.raw_q(self.actor.q_values(observation))

    def policy_state(self) -> dict[str, NDArray[Any]]:
        """What the greedy policy is made of, by name: weights, and what observations are normalised with."""
        normalizer = {} if self.normalizer is None else self.normalizer.state_dict()
        return self.learner.policy_state() | {f"normalizer.{name}": np.array(v) for name, v in normalizer.items()}

    def load_policy_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Play with the policy of another step."""
        own = {name: array for name, array in state.items() if name.startswith("normalizer.")}
        self.learner.load_policy_state({name: array for name, array in state.items() if name not in own})
        if self.normalizer is not None:
            self.normalizer.load_state_dict({name.removeprefix("normalizer."): array for name, array in own.items()})

    def epsilon(self) -> float:
        """ε of the ε-greedy policy at the present step; 1 for a table that no reward has told anything yet."""
        config, (step, budget) = self.config, self._place()
        if not config.hidden and not self.tally.reward_abs_max:
            return 1.0
        middle_step = round(config.epsilon_middle_fraction * budget)
        return epsilon_greedy(
            step,
            warmup_steps=config.warmup_steps - self.schedule_start,
            middle_step=middle_step,
            final_step=max(round(config.epsilon_final_fraction * budget), middle_step + 1),
            middle=config.epsilon_middle,
            final=config.epsilon_final,
        )

    def beta(self) -> float:
        """β of the importance weights at the present step."""
        start = self.config.beta_start
        return importance_exponent(*self._place(), 1.0 if start is None else start)

    def learning_rate(self) -> float:
        """Step size of Adam at the present step."""
        step, budget = self._place()
        start = self.config.learning_rate * dropped(step, budget, self.config.learning_rate_drops)
        return linear(step, start, self.config.learning_rate_decay * start, 0, budget)

    def state_dict(self) -> dict[str, Any]:
        """All that changes during training."""
        return {
            "budget_steps": self.budget_steps,
            "schedule_start": self.schedule_start,
            "learner": self.learner.state_dict(),
            "replay": self.replay.state_dict(),
            "multi_step": self._multi_step.state_dict(),
            "exploration": self.exploration.state_dict(),
            "collector": self.collector.state_dict(),
            "wrappers": statistics_of(self.collector.env),
            "normalizer": None if self.normalizer is None else self.normalizer.state_dict(),
            "calibrator": self.calibrator.state_dict(),
            "tally": self.tally.state_dict(),
            "watch": self.watch.state_dict(),
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> str | None:
        """Take over a saved state; returns why open episodes were given up, if they were."""
        self.collector.require_as_many(state["collector"])
        self.budget_steps = state["budget_steps"]
        self.schedule_start = int(state.get("schedule_start", 0))  # absent from older runs
        self.learner.load_state_dict(state["learner"])
        self.replay.load_state_dict(state["replay"])
        self._multi_step.load_state_dict(state.get("multi_step", {}))  # absent from older runs
        self.exploration.load_state_dict(state.get("exploration", {}))  # absent from older runs
        self.calibrator.load_state_dict(state["calibrator"])
        self.tally.load_state_dict(state["tally"])
        self.watch.load_state_dict(state.get("watch", {}))  # absent from older runs
        self._rng.bit_generator.state = state["rng"]
        if self.normalizer is not None:
            self.normalizer.load_state_dict(state["normalizer"])
        wrappers = state.get("wrappers", {})  # absent from older runs
        with evaluating(self.collector.env, wrappers):  # what is played again must not be learned from again
            notice = self.collector.load_state_dict(state["collector"])
        if wrappers:
            restore_statistics(self.collector.env, wrappers)
        if notice:
            self.calibrator.restart()
            self.watch.restart()
        return notice

    def _budget(self) -> int:
        return self.budget_steps or self.config.steps

    def _place(self) -> tuple[int, int]:
        """How far the schedules are, and how long."""
        return self.steps - self.schedule_start, self._budget() - self.schedule_start

    def _updates_due(self, step: int) -> int:
        """How many updates there should have been at a step."""
        return (step - self.config.warmup_steps) // self.config.update_period_steps

    def _will_learn(self, step: int) -> bool:
        """Whether there is an update to do at a step, and a batch for it in the memory as it is now."""
        return self._updates_due(step) > self.learner.updates and len(self.replay) >= self.config.batch_size

    def _learn(self) -> None:
        """As many updates as are due."""
        config = self.config
        if not self._will_learn(self.steps):
            return
        due = self._updates_due(self.steps)
        beta = self.beta()
        self.learner.gamma = self.calibrator.gamma
        self.learner.learning_rate = self.learning_rate()
        while self.learner.updates < due:
            batch = self._prefetcher.take() if self._prefetcher is not None else None
            if batch is None:
                batch = self.replay.sample(config.batch_size, beta)
            seen = batch if self.normalizer is None else self.normalizer.normalized(batch)
            result = self.learner.update(self.calibrator.normalized(seen))
            try:
                self.replay.update_priorities(batch.slots, result.td_error_abs)
            except NonFiniteError as error:
                raise NonFiniteError(
                    f"{config.algorithm_class.label} diverged at step {self.steps}, update {self.learner.updates}: "
                    f"{error}; lower learning_rate, lengthen target_period_updates, or use algorithm cdqn"
                ) from error
            self.tally.add_update(result)

    def _progress(self, steps_per_second: float) -> Progress:
        means = self.tally.take_means()
        loss, q_mean, gradient_norm = (means.pop(name, None) for name in ("loss", "q_mean", "gradient_norm"))
        earned_low, earned_high = self.watch.earned.range() or (None, None)
        return Progress(
            step=self.steps,
            update=self.learner.updates,
            episodes=self.tally.episodes,
            return_mean=self.tally.return_mean(),
            q_bound=self.calibrator.q_bound(self.tally.reward_abs_max),
            earned_low=earned_low,
            earned_high=earned_high,
            epsilon=self.epsilon(),
            beta=self.beta() if self.config.replay == "prioritized" else None,
            steps_per_second=steps_per_second,
            loss=loss,
            q_mean=None if q_mean is None else self.calibrator.raw_q(q_mean),
            gradient_norm=gradient_norm,
            statistics=means,
        )
