"""The settings with which the paper learned to cool the oscillator (App. B.1), for the preset `paper-B.1`."""

SETTINGS = {
    "steps": 19_800_000,  # 11 000 episodes of 1800
    "num_envs": 32,  # ours: one matrix product for all of them
    "gamma": 0.99,
    "hidden": (512, 512, 256),  # the authors' streams have 256 and 128
    "initial_weights": "pytorch",  # authors' code; with He's, Q is steep where the energy is high, and that attracts
    "loss": "mse",
    "learning_rate": 1e-3,
    "learning_rate_decay": 1.0,
    # Episodes 1000, 2000, 5000, 7000, 8500 and 10 000 of 11 000: 4e-4, 8e-5, 2e-5, 4e-6, 8e-7, 2e-7.
    "learning_rate_drops": tuple(
        (episode / 11_000, factor)
        for episode, factor in ((1000, 0.4), (2000, 0.08), (5000, 0.02), (7000, 4e-3), (8500, 8e-4), (10_000, 2e-4))
    ),
    "batch_size": 512,
    "update_period_steps": 64,  # every transition is used 8 times
    "target_period_updates": 300,
    "warmup_steps": 20_000,  # ours
    "memory_size": 9_000_000,  # 5000 episodes
    "eviction": "random",
    "alpha": 0.2,
    "epsilon_middle": 0.2,
    "epsilon_middle_fraction": 0.005,  # ours
    "epsilon_final": 0.004,
    "epsilon_final_fraction": 0.1,  # ours
    "log_period_steps": 20_000,
    "checkpoint_period_steps": 1_000_000,
}
