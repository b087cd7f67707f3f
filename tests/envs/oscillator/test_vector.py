"""Trajectories side by side: episodes from seed and actions, their ends, resume."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cdqn
from cdqn.envs import describe, make_vec
from cdqn.envs.oscillator import QuarticOscillatorEnv, QuarticOscillatorVectorEnv
from cdqn.errors import ConfigError, UnsupportedEnvironmentError
from cdqn.storage.checkpoint import load_checkpoint, save_checkpoint
from cdqn.tasks import oscillator as physics
from cdqn.training.collector import Collector

ID = "cdqn/QuarticOscillator-v0"

STILL = 10


def gentle(count, steps, seed=0):
    """Actions that do not end an episode soon."""
    return np.random.default_rng(seed).integers(9, 12, (steps, count))


def play(env, actions, seed):
    """Observations and rewards of all steps, of a vector environment."""
    observation, infos = env.reset(seed=seed)
    series = [(observation, infos["energy"])]
    for action in actions:
        observation, reward, _, _, _ = env.step(action)
        series.append((observation, reward))
    return [np.array(column) for column in zip(*series, strict=True)]


def test_make_vec_makes_the_native_environment_and_others_make_it_too():
    for env in (make_vec(ID, 3), gym.make_vec(ID, 3), make_vec(f"cdqn:{ID}", 3)):
        assert isinstance(env, QuarticOscillatorVectorEnv)
        assert env.num_envs == 3
        assert env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
        spec = describe(env)
        assert (spec.kind, spec.observation_shape, spec.num_actions) == ("vector", (20,), 21)
        assert spec.observation_dtype == np.float32
    assert gym.make_vec(ID, 2, energy_limit=50.0).energy_limit == 50.0


def test_native_environments_of_others_are_not_taken():
    """They begin episodes by themselves, with autoreset: CartPole has one."""
    assert gym.registry["CartPole-v1"].vector_entry_point is not None
    assert isinstance(make_vec("CartPole-v1", 2), SyncVectorEnv)


def test_observation_and_reward_are_those_of_the_state_after_the_step():
    env = QuarticOscillatorVectorEnv(3, reward_scale=0.25, observation_scale=0.5)
    env.reset(seed=0)
    observation, reward, terminated, truncated, infos = env.step([0, 10, 20])
    states = env._amplitudes_BN
    np.testing.assert_array_equal(observation, (physics.moments(env.basis, states) * 0.5)[:3].astype(np.float32))
    np.testing.assert_array_equal(infos["energy"], physics.energies(env.basis, states)[:3])
    np.testing.assert_array_equal(reward, -0.25 * infos["energy"])
    assert observation.dtype == np.float32
    assert env.observation_space.contains(observation)
    assert not terminated.any()
    assert not truncated.any()


def test_actions_push_to_their_side():
    env = QuarticOscillatorVectorEnv(3, energy_limit=100.0)
    before, _ = env.reset(seed=[4, 4, 4])
    after = env.step([0, 10, 20])[0]
    kick = (after[:, 1] - before[:, 1]) / 0.1
    # F·τ = ±5π/18, on top of what the potential does.
    np.testing.assert_allclose([kick[0] - kick[1], kick[2] - kick[1]], [-5 * np.pi / 18, 5 * np.pi / 18], rtol=0.1)


def test_wavefunction_is_observed_as_real_and_imaginary_parts_at_the_points():
    env = QuarticOscillatorVectorEnv(2, observation="wavefunction")
    observation, _ = env.reset(seed=0)
    assert observation.shape == (2, 80)
    assert env.observation_space.contains(observation)
    psi = observation[:, :40] + 1j * observation[:, 40:]
    np.testing.assert_allclose((np.abs(psi) ** 2).sum(1), 1, rtol=1e-5)
    x = (np.abs(psi) ** 2) @ env.basis.point_N
    np.testing.assert_allclose(x, physics.moments(env.basis, env._amplitudes_BN)[:2, 0], atol=1e-5)
    assert np.abs(observation[:, 40:]).max() > 0.05


def test_signal_is_position_and_white_noise():
    env = QuarticOscillatorVectorEnv(64, energy_limit=100.0)
    env.reset(seed=0)
    noise = []
    for _ in range(100):
        x = env._observe()[:, 0] / env.observation_scale
        observation, _, _, _, infos = env.step(np.full(64, STILL))
        middle = (x + observation[:, 0] / env.observation_scale) / 2
        noise.append((infos["signal"] - middle) * np.sqrt(2 * physics.MEASUREMENT * physics.CONTROL_PERIOD))
    noise = np.array(noise)
    count = noise.size
    assert abs(noise.mean()) < 4 / np.sqrt(count)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / count)
    assert abs((noise[1:] * noise[:-1]).mean()) < 4 / np.sqrt(count)
    assert abs((noise[:, 1:] * noise[:, :-1]).mean()) < 4 / np.sqrt(count)


def test_episode_is_truncated_at_its_time_and_never_terminated():
    env = QuarticOscillatorVectorEnv(2, time_limit=2.0, energy_limit=100.0)
    env.reset(seed=0)
    ends = [env.step([STILL, STILL])[2:4] for _ in range(36)]
    assert not np.array([terminated for terminated, _ in ends]).any()
    truncated = np.array([truncated for _, truncated in ends])
    assert not truncated[:-1].any()
    assert truncated[-1].all()


def test_episode_is_truncated_above_the_energy_limit_with_its_true_last_observation():
    env = QuarticOscillatorVectorEnv(2)
    env.reset(seed=0)
    for _ in range(100):
        observation, reward, terminated, truncated, infos = env.step([20, STILL])
        np.testing.assert_array_equal(truncated, infos["energy"] >= 12.0)
        if truncated[0]:
            break
    assert truncated[0]
    assert not truncated[1]
    assert not terminated.any()
    assert not infos["edge"].any()
    assert reward[0] == -0.01 * infos["energy"][0] < -0.12
    np.testing.assert_array_equal(observation[0], env._observe()[0])


def test_state_at_the_edge_of_the_basis_is_flagged_counted_and_ended():
    env = QuarticOscillatorVectorEnv(3, energy_limit=100.0)
    env.reset(seed=0)
    env._amplitudes_BN[1, 0] = 1
    env._amplitudes_BN[1, -1] = 0.05
    _, _, terminated, truncated, infos = env.step([STILL] * 3)
    np.testing.assert_array_equal(infos["edge"], [False, True, False])
    np.testing.assert_array_equal(truncated, [False, True, False])
    assert not terminated.any()
    assert env.edge_count == 1
    assert infos["energy"][1] < 5  # it was not the energy


def test_ended_episode_is_not_continued():
    env = QuarticOscillatorVectorEnv(2, time_limit=1 / 18)
    with pytest.raises(UnsupportedEnvironmentError, match="environment 0 has ended: reset it"):
        env.step([STILL, STILL])
    env.reset(seed=0)
    env.step([STILL, STILL])
    env.reset(seed=[0, 1], options={"reset_mask": np.array([True, False])})
    with pytest.raises(UnsupportedEnvironmentError, match="environment 1 has ended: reset it"):
        env.step([STILL, STILL])


def test_trajectory_does_not_depend_on_the_batch():
    """Bit for bit in batches of any size, at any place, beside any neighbours; and across blocks of noise."""
    actions = gentle(20, 150)
    whole, rewards = play(QuarticOscillatorVectorEnv(20, energy_limit=100.0), actions, seed=list(range(20)))
    for rows in ([7], [19, 0, 3], [5, 4, 3, 2, 1, 0, 9, 8, 11]):
        part, part_rewards = play(
            QuarticOscillatorVectorEnv(len(rows), energy_limit=100.0), actions[:, rows], seed=rows
        )
        np.testing.assert_array_equal(part, whole[:, rows])
        np.testing.assert_array_equal(part_rewards, rewards[:, rows])


def test_partial_reset_leaves_the_others_alone_and_a_seed_gives_its_episode_whatever_was_before():
    env = QuarticOscillatorVectorEnv(5)
    first, _ = env.reset(seed=[10, 11, 12, 13, 14])
    env.step(np.full(5, 12))
    before = env._observe()
    mask = np.array([False, True, False, False, True])
    after, infos = env.reset(seed=[99, 11, 99, 99, 14], options={"reset_mask": mask})
    np.testing.assert_array_equal(after[mask], first[mask])
    np.testing.assert_array_equal(after[~mask], before[~mask])
    np.testing.assert_array_equal(env._step_B, [1, 0, 1, 1, 0])
    np.testing.assert_array_equal(infos["energy"], physics.energies(env.basis, env._amplitudes_BN)[:5])


@pytest.mark.parametrize("steps", [0, 5, 70])
def test_saved_state_goes_on_bit_for_bit(steps, tmp_path):
    def make():
        return QuarticOscillatorVectorEnv(5, energy_limit=100.0)

    straight = make()
    straight.reset(seed=3)
    for action in gentle(5, steps):
        straight.step(action)
    save_checkpoint(tmp_path, 1, {"env": straight.state_dict()})
    resumed = make()
    resumed.load_state_dict(load_checkpoint(tmp_path)["env"])
    for action in gentle(5, 70, seed=1):
        one, other = straight.step(action), resumed.step(action)
        for left, right in zip(one[:4], other[:4], strict=True):
            np.testing.assert_array_equal(left, right)
        np.testing.assert_array_equal(one[4]["signal"], other[4]["signal"])
    np.testing.assert_array_equal(straight.reset()[0], resumed.reset()[0])  # seeds are drawn alike


def test_saved_state_is_not_changed_by_what_follows():
    env = QuarticOscillatorVectorEnv(2)
    env.reset(seed=0)
    state = env.state_dict()
    kept = copy.deepcopy(state)
    env.reset()
    env.step([5, 15])
    for name in ("amplitudes", "action", "seed", "step", "ended"):
        np.testing.assert_array_equal(state[name], kept[name])
    assert state["rng"] == kept["rng"]


def test_state_of_another_environment_is_refused_with_its_numbers():
    state = QuarticOscillatorVectorEnv(4).state_dict()
    with pytest.raises(ConfigError, match="of 4 environments and basis_size 40, this one has 5 and 40"):
        QuarticOscillatorVectorEnv(5).load_state_dict(state)
    with pytest.raises(ConfigError, match="has 4 and 44"):
        QuarticOscillatorVectorEnv(4, basis_size=44).load_state_dict(state)


def test_collector_resumes_open_episodes_exactly():
    def collector():
        env = make_vec(ID, 4)
        return Collector(env, describe(env), seed=5)

    rng = np.random.default_rng(0)
    straight = collector()
    for _ in range(150):
        straight.step(rng.integers(4, 17, 4))
    assert straight._episode_index.min() >= 1
    assert len(set(straight._length.tolist())) > 1
    resumed = collector()
    assert resumed.resumption == "state"
    assert resumed.load_state_dict(copy.deepcopy(straight.state_dict())) is None
    for _ in range(100):
        actions = rng.integers(4, 17, 4)
        one, other = straight.step(actions), resumed.step(actions)
        for column, other_column in zip(one.transitions, other.transitions, strict=True):
            np.testing.assert_array_equal(column, other_column)
        assert one.episodes == other.episodes


def test_agent_trains_on_it_by_name():
    agent = cdqn.CDQN(ID, seed=0, hidden=(8,), warmup_steps=50, batch_size=8, compile="off")
    agent.learn(120)
    assert agent.predict(np.zeros((1, 20), np.float32)).shape == (1,)


@pytest.mark.parametrize("wrong", [21, -1])
def test_action_outside_the_range_is_named_with_its_place(wrong):
    env = QuarticOscillatorVectorEnv(3)
    env.reset(seed=0)
    before = env.state_dict()
    with pytest.raises(UnsupportedEnvironmentError, match=f"action {wrong} of environment 1 is outside 0…20"):
        env.step([0, wrong, 20])
    np.testing.assert_array_equal(env.state_dict()["amplitudes"], before["amplitudes"])
    single = QuarticOscillatorEnv()
    single.reset(seed=0)
    with pytest.raises(UnsupportedEnvironmentError, match=f"action {wrong} of environment 0"):
        single.step(np.int64(wrong))


@pytest.mark.parametrize("wrong", [[0.5, 1.0], [1], 3, [[1], [2]]])
def test_actions_of_another_type_or_shape_are_refused(wrong):
    env = QuarticOscillatorVectorEnv(2)
    env.reset(seed=0)
    with pytest.raises(UnsupportedEnvironmentError, match="2 environments take as many integers"):
        env.step(wrong)
