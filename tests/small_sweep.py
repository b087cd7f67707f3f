"""Tiny sweeps on a line, for the tests of this folder."""

from cdqn.runs.sweep.plan import plan_sweep

SPACE = {"learning_rate": {"low": 1e-4, "high": 1e-1, "log": True}, "n_step": [1, 2, 3]}
TINY = {
    "steps": 300,
    "hidden": (8,),
    "warmup_steps": 40,
    "batch_size": 8,
    "memory_size": 400,
    "update_period_steps": 8,
    "evaluation_period_steps": 60,
    "log_period_steps": 20,
    "checkpoint_period_steps": 120,
    "evaluation_episodes": 2,
    "num_envs": 2,
    "compile": "off",
}


def small_plan(env_id="cli_envs:Line-v0", space=SPACE, trials=3, seeds=1, **settings):
    """A sweep of 300 steps and 5 evaluations a run."""
    prune = settings.pop("prune", True)
    return plan_sweep(env_id, space, settings=TINY | settings, trials=trials, seeds=seeds, prune=prune)
