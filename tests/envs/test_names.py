"""What a name means, and what is said of one that means nothing."""

import pytest

from cdqn.envs import atari_game, make_vec, module_of
from cdqn.envs.names import find_maker
from cdqn.errors import UnsupportedEnvironmentError


@pytest.mark.parametrize(
    ("wrong", "near"), [("CartPol-v1", "CartPole-v1"), ("cartpole-v1", "CartPole-v1"), ("Acrobot1", "Acrobot-v1")]
)
def test_unknown_id_is_answered_with_the_nearest_name(wrong, near):
    with pytest.raises(UnsupportedEnvironmentError) as caught:
        make_vec(wrong, 1)
    assert wrong in str(caught.value)
    assert near in str(caught.value)


def test_id_like_nothing_at_all_points_to_the_list():
    with pytest.raises(UnsupportedEnvironmentError, match="cdqn list"):
        make_vec("xqzwv", 1)


def test_unknown_version_is_an_error_not_another_environment():
    with pytest.raises(UnsupportedEnvironmentError, match="CartPole"):
        make_vec("CartPole-v99", 1)


def test_module_that_does_not_exist_is_named():
    with pytest.raises(UnsupportedEnvironmentError, match="no_such_module"):
        make_vec("no_such_module:Env-v0", 1)


def test_name_of_ones_own_module_is_what_it_imports_and_that_of_a_known_package_is_not():
    assert module_of("my_module:MyEnv") == "my_module"
    assert module_of("CartPole-v1") is None
    assert module_of("minatar:MinAtar/Breakout-v1") is None


def test_game_is_found_by_its_name_unless_gymnasium_has_the_name():
    assert atari_game("Pong") == "pong"
    assert atari_game("CartPole-v1") is None
    assert atari_game("MinAtar/Breakout-v1") is None


def test_class_of_a_module_makes_itself():
    env = find_maker("helpers:CountingEnv")()
    assert type(env).__name__ == "CountingEnv"
