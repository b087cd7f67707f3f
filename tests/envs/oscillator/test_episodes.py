"""How episodes begin, and the random numbers of their seeds."""

import numpy as np

from cdqn.envs.oscillator import QuarticOscillatorVectorEnv, episodes
from cdqn.tasks import oscillator as physics

STILL = 10


def test_one_seed_gives_each_environment_its_own_and_later_episodes_repeat_too():
    env, other = QuarticOscillatorVectorEnv(3), QuarticOscillatorVectorEnv(3)
    first, second = env.reset(seed=8)[0], env.reset()[0]
    np.testing.assert_array_equal(first, other.reset(seed=[8, 9, 10])[0])
    other.reset(seed=8)
    np.testing.assert_array_equal(other.reset()[0], second)
    assert len(np.unique(np.concatenate([first, second])[:, 0])) == 6
    assert not np.array_equal(env.reset()[0], second)


def test_seed_begins_other_noise_in_each_block_and_each_episode():
    env = QuarticOscillatorVectorEnv(2, energy_limit=100.0)
    env.reset(seed=0)
    signals = np.array([env.step([STILL, STILL])[4]["signal"] for _ in range(192)])
    assert len(np.unique(signals)) == signals.size
    for block in (signals[:64], signals[64:128], signals[128:]):
        assert np.abs(np.corrcoef(block.T)[0, 1]) < 0.5
    assert np.abs(np.corrcoef(signals[:64, 0], signals[64:128, 0])[0, 1]) < 0.5


def test_episodes_begin_below_the_energy_limit_after_15_to_20_units_of_measurement(monkeypatch):
    counts, original = [], physics.free_evolution

    def watched(propagator, amplitudes, count, noise):
        counts.append(count)
        return original(propagator, amplitudes, count, noise)

    monkeypatch.setattr(physics, "free_evolution", watched)
    env = QuarticOscillatorVectorEnv(400)
    _, infos = env.reset(seed=0)
    assert (infos["energy"] < 7.5).all()
    assert len(counts) > 1  # some were drawn again
    steps = counts[0][:400]
    assert steps.min() >= 270
    assert steps.max() <= 360
    assert np.ptp(steps) > 80
    # Without that limit the mean energy is ⟨p²⟩/2m + ⟨λx⁴⟩ of the packets, and what the measurement adds.
    monkeypatch.setattr(episodes, "START_ENERGY_LIMIT", np.inf)
    energy = env.reset(seed=1)[1]["energy"]
    kinetic = ((2 * np.pi) ** 2 * 0.3**2 / 3 + 1 / 4) / (2 * physics.MASS)
    expected = kinetic + 3 * physics.QUARTIC + physics.MEASUREMENT / (4 * physics.MASS) * (17.5 + 0.5 / 18)
    assert abs(energy.mean() - expected) < 4 * energy.std() / np.sqrt(400)
    assert energy.max() > 7.5
