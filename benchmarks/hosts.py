"""DQN and C-DQN inside Stable-Baselines3, TorchRL and RLlib, on the same fixed data: which diverges, and what it costs.

The setting is that of the demo: 5000 transitions of random play in CartPole, half of all transitions never stored, a
network of 64-64, Huber loss, γ 0.99, step size 3e-4, a copy to the target network every 20 updates. Nothing differs
between the two runs of a seed but the name of the loss. Largest Q possible: 100.

    python benchmarks/hosts.py --seeds 5 --updates 5000 --out benchmarks/results/hosts.csv

Written by run: host, loss, seed, the mean of max Q(s) over the data at the end and at its largest, and milliseconds per
update, in which the host's sampling is included. Losses alternate, for the sake of the times.
"""

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from cdqn.experiments.demo.offline import collect_random

PERIOD, BATCH, RATE, GAMMA, HIDDEN = 20, 32, 3e-4, 0.99, [64, 64]
Host = Callable[..., tuple[Callable[[int], None], Callable[[torch.Tensor], torch.Tensor]]]


def in_sb3(loss, rows, seed):
    """Stable-Baselines3: its buffer is filled, and `train` called as it calls it itself."""
    from cdqn.integrations.sb3 import CDQN

    model = CDQN(
        "MlpPolicy",
        "CartPole-v1",
        loss=loss,
        buffer_size=len(rows.action),
        learning_rate=RATE,
        gamma=GAMMA,
        max_grad_norm=float("inf"),
        policy_kwargs={"net_arch": HIDDEN},
        seed=seed,
        device="cpu",
    )
    model._setup_learn(1)
    for row in range(len(rows.action)):
        model.replay_buffer.add(
            rows.observation[row][None],
            rows.next_observation[row][None],
            rows.action[row][None],
            rows.reward[row][None],
            rows.terminated[row][None],
            [{}],
        )

    def learn(updates):
        model.train(updates, BATCH)
        model.q_net_target.load_state_dict(model.q_net.state_dict())

    return learn, model.q_net


def in_torchrl(loss, rows, seed):
    """TorchRL: its replay buffer, its target updater, Adam."""
    from tensordict import TensorDict
    from torchrl.data import Categorical, LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.modules import MLP, QValueActor
    from torchrl.objectives import HardUpdate

    from cdqn.integrations.torchrl import CDQNLoss

    torch.manual_seed(seed)
    network = MLP(in_features=4, out_features=2, num_cells=HIDDEN, activation_class=torch.nn.ReLU)
    actor = QValueActor(network, in_keys=["observation"], spec=Categorical(2))
    module = CDQNLoss(actor, loss=loss, loss_function="smooth_l1", delay_value=True)
    module.make_value_estimator(gamma=GAMMA)
    updater = HardUpdate(module, value_network_update_interval=PERIOD)
    optimizer = torch.optim.Adam(module.parameters(), RATE)
    count = len(rows.action)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(count), batch_size=BATCH)
    end = torch.from_numpy(rows.terminated)[:, None]
    after = {"observation": torch.from_numpy(rows.next_observation), "terminated": end, "done": end}
    after["reward"] = torch.from_numpy(rows.reward)[:, None]
    now = {"observation": torch.from_numpy(rows.observation), "action": torch.from_numpy(rows.action), "next": after}
    buffer.extend(TensorDict(now, [count]))

    def learn(updates):
        for _ in range(updates):
            optimizer.zero_grad()
            module(buffer.sample())["loss"].backward()
            optimizer.step()
            updater.step()

    def q_values(observation):
        with module.value_network_params.data.to_module(module.value_network):
            return module.value_network(TensorDict({"observation": observation}, [len(observation)]))["action_value"]

    return learn, q_values


def in_rllib(loss, rows, seed):
    """RLlib's learner, in this process, on batches drawn from the data; its own double Q-learning in both runs."""
    import gymnasium as gym
    from ray.rllib.core.columns import Columns
    from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
    from ray.rllib.utils.metrics import NUM_ENV_STEPS_SAMPLED_LIFETIME

    from cdqn.integrations.rllib import CDQNConfig

    config = (
        CDQNConfig()
        .environment("CartPole-v1")
        .training(loss=loss, lr=RATE, gamma=GAMMA, target_network_update_freq=PERIOD, grad_clip=None)
        .rl_module(model_config={"fcnet_hiddens": HIDDEN, "fcnet_activation": "relu", "head_fcnet_hiddens": []})
        .debugging(seed=seed)
    )
    learner = config.build_learner(env=gym.make("CartPole-v1"))
    learner.build()
    rng = np.random.default_rng(seed)
    columns = {
        Columns.OBS: rows.observation,
        Columns.NEXT_OBS: rows.next_observation,
        Columns.ACTIONS: rows.action,
        Columns.REWARDS: rows.reward,
        Columns.TERMINATEDS: rows.terminated,
    }
    done = 0

    def learn(updates):
        nonlocal done
        for _ in range(updates):
            at, done = rng.integers(len(rows.action), size=BATCH), done + 1
            batch = {name: torch.from_numpy(column[at]) for name, column in columns.items()}
            batch |= {"weights": torch.ones(BATCH), "n_step": torch.ones(BATCH)}
            whole = MultiAgentBatch({"default_policy": SampleBatch(batch)}, env_steps=BATCH)
            learner.update(batch=whole, timesteps={NUM_ENV_STEPS_SAMPLED_LIFETIME: done})

    def q_values(observation):
        return learner.module["default_policy"].compute_q_values({Columns.OBS: observation})["qf_preds"]

    return learn, q_values


HOSTS: dict[str, Host] = {"sb3": in_sb3, "torchrl": in_torchrl, "rllib": in_rllib}


def run(host: str, loss: str, seed: int, updates: int) -> dict[str, object]:
    """One run; Q is looked at after every copy."""
    rows = collect_random("CartPole-v1", 5000, seed).transitions
    learn, q_values = HOSTS[host](loss, rows, seed)
    observation = torch.from_numpy(rows.observation)
    seconds, largest, q = 0.0, 0.0, 0.0
    for _ in range(updates // PERIOD):
        begun = time.process_time()
        learn(PERIOD)
        seconds += time.process_time() - begun
        with torch.no_grad():
            q = float(q_values(observation).amax(1).mean())
        largest = max(largest, abs(q))
    milliseconds = 1000 * seconds / updates
    return {"host": host, "loss": loss, "seed": seed, "updates": updates, "q_end": q, "q_largest": largest} | {
        "ms_per_update": milliseconds
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", nargs="+", default=list(HOSTS), choices=list(HOSTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--updates", type=int, default=5000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for host in options.hosts:
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for loss in ("dqn", "cdqn") if seed % 2 else ("cdqn", "dqn"):
                found.append(run(host, loss, seed, options.updates))
                print("  ".join(f"{name} {value:.5g}" if isinstance(value, float) else f"{value}"
                                for name, value in found[-1].items()), flush=True)  # fmt: skip
        ratios = [
            mine["ms_per_update"] / theirs["ms_per_update"]
            for mine in found
            for theirs in found
            if (mine["host"], mine["loss"]) == (host, "cdqn")
            and (theirs["host"], theirs["loss"], theirs["seed"]) == (host, "dqn", mine["seed"])
        ]
        print(f"{host}: C-DQN takes {np.mean(ratios):.2f} [{min(ratios):.2f} … {max(ratios):.2f}] times as long")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
