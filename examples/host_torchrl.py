"""C-DQN inside TorchRL, in the place of its DQNLoss: python examples/host_torchrl.py"""

import torch
from tensordict.nn import TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import HardUpdate

from cdqn.integrations.torchrl import CDQNLoss


def main(steps: int = 20_000) -> float:
    torch.manual_seed(0)
    env = GymEnv("CartPole-v1", categorical_action_encoding=True)
    actor = QValueActor(MLP(in_features=4, out_features=2, num_cells=[64, 64]), spec=env.action_spec)
    explore = EGreedyModule(env.action_spec, annealing_num_steps=steps // 2, eps_end=0.05)
    collector = Collector(
        env, TensorDictSequential(actor, explore), frames_per_batch=100, total_frames=steps, init_random_frames=500
    )
    memory = TensorDictReplayBuffer(storage=LazyTensorStorage(steps), batch_size=64)
    loss_module = CDQNLoss(actor, double_dqn=True, loss_function="smooth_l1")
    loss_module.make_value_estimator(gamma=0.99)
    target = HardUpdate(loss_module, value_network_update_interval=200)
    optimizer = torch.optim.Adam(loss_module.parameters(), 1e-3)
    for data in collector:
        memory.extend(data)
        for _ in range(len(data) // 2):
            optimizer.zero_grad()
            loss_module(memory.sample())["loss"].backward()
            optimizer.step()
            target.step()
        explore.step(len(data))
    return float(GymEnv("CartPole-v1", categorical_action_encoding=True).rollout(500, actor)["next", "reward"].sum())


if __name__ == "__main__":
    print(f"return {main():.0f}")
