"""Pictures of the oscillator."""

import numpy as np

import cdqn
from cdqn.envs.oscillator import QuarticOscillatorEnv, QuarticOscillatorVectorEnv
from cdqn.tasks import oscillator as physics

ID = "cdqn/QuarticOscillator-v0"


def test_picture_shows_the_density_where_it_is_and_changes_with_the_force():
    env = QuarticOscillatorVectorEnv(2, render_mode="rgb_array", energy_limit=100.0)
    env.reset(seed=0)
    env._amplitudes_BN[:2] = physics.gaussian_packets(env.basis, [0.0, 0.0], mean=-1.5, std=0.4)
    env._amplitudes_BN[1] *= (-1.0) ** np.arange(40)  # mirrored
    left, right = env.render()
    assert left.shape == (360, 480, 3)
    assert left.dtype == np.uint8
    for picture, side in ((left, -1), (right, 1)):
        blue = (picture[..., 2].astype(int) - picture[..., 0] > 40).nonzero()[1]
        assert len(blue) > 500
        assert (blue.mean() - 480 * 0.54) * side > 30
    env._amplitudes_BN[:2] = physics.gaussian_packets(env.basis, [0.0, 0.0])
    env._action_B[:2] = [10, 14]
    free, pushed = env.render()
    assert not np.array_equal(free, pushed)
    assert QuarticOscillatorVectorEnv(1).render() is None


def test_picture_is_a_copy_that_the_next_one_does_not_change():
    env = QuarticOscillatorEnv(render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    kept = picture.copy()
    for _ in range(5):
        env.step(np.int64(13))
    assert not np.array_equal(env.render(), kept)
    np.testing.assert_array_equal(picture, kept)


def test_episode_becomes_a_video(tmp_path):
    from cdqn.cli.playback import play as play_video

    agent = cdqn.CDQN(ID, seed=0, hidden=(8,), warmup_steps=50, batch_size=8, compile="off")
    agent.learn(60)
    video = tmp_path / "cooling.gif"
    assert len(play_video(agent, 1, epsilon=1.0, seed=0, video=video)) == 1
    assert video.stat().st_size > 10_000
