"""The tasks of the suite: what they are called, how long they are trained, and the scores that returns are measured by.

Pure data. A normalised score is 0 for a random policy and 1 for the reference.
"""

from typing import NamedTuple


class Task(NamedTuple):
    """One environment of the suite."""

    name: str
    """As it stands in tables and folders."""
    env_id: str
    steps: int
    """Budget at laptop scale."""
    random: float
    """Mean return of a uniformly random policy (benchmarks/random_scores.py)."""
    reference: float
    source: str
    """Where the reference is from."""
    extra: str | None = None
    """The extra of this package that installs the environment."""
    idle: float | None = None
    """Return of running out of time without achieving anything, where that is better than random play."""

    def normalized(self, score: float) -> float:
        """0 for random (or idle) play, 1 for the reference; a policy worse than that counts as 0."""
        return max(0.0, (score - self.floor) / (self.reference - self.floor))

    @property
    def floor(self) -> float:
        """What counts as 0."""
        return self.random if self.idle is None else self.idle


_SOLVED = "Gymnasium's threshold for a solved task"
_OPTIMUM = "the optimum"
_OWN = "about the best run at this budget among the trials of docs/tuning.md"

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("CartPole", "CartPole-v1", 50_000, 22.6, 500.0, _OPTIMUM),
        Task("Acrobot", "Acrobot-v1", 50_000, -499.0, -80.0, _OWN),
        Task("MountainCar", "MountainCar-v0", 60_000, -200.0, -110.0, _SOLVED),
        Task("LunarLander", "LunarLander-v3", 100_000, -175.0, 200.0, _SOLVED, "box2d"),
        Task("CliffWalking", "cdqn/CliffWalking-v0", 20_000, -2050.0, -13.0, _OPTIMUM, idle=-200.0),
        Task("FrozenLake", "cdqn/FrozenLake8x8-v0", 30_000, 0.0, 1.0, _OPTIMUM),
        Task("Asterix", "MinAtar/Asterix-v1", 30_000, 0.5, 2.0, _OWN, "minatar"),
        Task("Breakout", "MinAtar/Breakout-v1", 30_000, 0.4, 8.0, _OWN, "minatar"),
        Task("Freeway", "MinAtar/Freeway-v1", 30_000, 0.3, 30.0, _OWN, "minatar"),
        Task("Seaquest", "MinAtar/Seaquest-v1", 30_000, 0.1, 1.0, _OWN, "minatar"),
        Task("SpaceInvaders", "MinAtar/SpaceInvaders-v1", 30_000, 4.1, 25.0, _OWN, "minatar"),
    )
}
