"""C-DQN inside Stable-Baselines3; `loss="dqn"` is the host's own DQN, step for step: python examples/host_sb3.py"""

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from cdqn.integrations.sb3 import CDQN


def main(steps: int = 50_000) -> float:
    env = make_vec_env("CartPole-v1", n_envs=4, seed=0)
    model = CDQN(
        "MlpPolicy",
        env,
        loss="cdqn",
        double_q=True,
        prioritized=True,
        learning_rate=1e-3,
        train_freq=1,
        gradient_steps=4,
        target_update_interval=200,
        seed=0,
    )
    model.learn(steps)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=10)
    return mean


if __name__ == "__main__":
    print(f"mean return {main():.0f}")
