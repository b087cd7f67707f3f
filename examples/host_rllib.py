"""C-DQN inside RLlib, with env runners and a learner in processes of their own: python examples/host_rllib.py"""

from cdqn.integrations.rllib import CDQNConfig


def main(steps: int = 20_000, env_runners: int = 2) -> float:
    config = (
        CDQNConfig()
        .environment("CartPole-v1")
        .calibrate(episodes=20)  # γ from the rewards of random play
        .training(loss="cdqn", lr=1e-3, n_step=3, target_network_update_freq=200, training_intensity=16)
        .env_runners(num_env_runners=env_runners, rollout_fragment_length=32)
        .learners(num_learners=1 if env_runners else 0)
        .fault_tolerance(restart_failed_env_runners=True)
    )
    algorithm = config.build_algo()
    best, sampled = 0.0, 0
    while sampled < steps:
        found = algorithm.train()["env_runners"]
        mean, sampled = found.get("episode_return_mean", 0.0), int(found["num_env_steps_sampled_lifetime"])
        best = max(best, mean)
        print(f"{sampled:,} steps: mean return {mean:.0f}")
    algorithm.stop()
    return best


if __name__ == "__main__":
    print(f"best mean return {main():.0f}")
