"""The trainer: when it updates, what it leaves alone, and that it learns."""

import copy

import numpy as np
import pytest
import torch

import cdqn
from cdqn.errors import NonFiniteError
from cdqn.training.events import Progress, Warned
from helpers import ChoiceEnv, CountingEnv, WalkEnv, assert_same_state, make_trainer, rows_without_clock, scaled
from helpers import run_trainer as run


def test_learning_rate_falls_linearly_over_the_budget_and_stays():
    trainer = make_trainer(learning_rate=1e-3, learning_rate_decay=0.1)
    trainer.settle_budget(400)
    run(trainer, 200)
    assert trainer.learner.learning_rate == pytest.approx(5.5e-4)
    run(trainer, 400)
    assert trainer.learner.learning_rate == pytest.approx(1e-4)
    run(trainer, 500)
    assert trainer.learner.learning_rate == pytest.approx(1e-4)
    constant = make_trainer(learning_rate=1e-3, learning_rate_decay=1.0)
    run(constant, 400)
    assert constant.learner.learning_rate == 1e-3


def test_learning_rate_drops_at_shares_of_the_budget():
    trainer = make_trainer(learning_rate=1e-3, learning_rate_decay=1.0, learning_rate_drops=((0.5, 0.4), (0.75, 0.08)))
    trainer.settle_budget(400)
    rates = []
    for steps in (196, 200, 296, 300, 500):
        run(trainer, steps)
        rates.append(trainer.learner.learning_rate)
    assert rates == pytest.approx([1e-3, 4e-4, 4e-4, 8e-5, 8e-5])


def test_network_begins_with_the_weights_asked_for():
    he, pytorch = (make_trainer(initial_weights=name).learner.networks["q"] for name in ("he", "pytorch"))
    assert not he.head.hidden.bias.count_nonzero()
    assert pytorch.head.hidden.bias.count_nonzero()


def test_rows_over_n_steps_are_what_is_stored():
    trainer = make_trainer(num_envs=1, env=CountingEnv, n_step=2, gamma=0.5)
    run(trainer, 7)  # an episode of 3 steps that is cut off, one of 4 that terminates; rewards are 1, 2, 3 …
    rows = trainer.replay.read(np.arange(len(trainer.replay)), np.ones(len(trainer.replay)))
    assert rows.observation[:, 1:].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3]]
    assert rows.next_observation[:, 1:].tolist() == [[0, 2], [0, 3], [1, 2], [1, 3], [1, 4], [1, 4]]
    assert rows.reward.tolist() == [2.0, 3.5, 2.0, 3.5, 5.0, 4.0]
    assert rows.terminated.tolist() == [False] * 4 + [True] * 2


def test_run_over_n_steps_resumes_exactly():
    straight, resumed = make_trainer(n_step=3), make_trainer(n_step=3)
    for trainer in (straight, resumed):
        trainer.settle_budget(400)
    run(straight, 200)
    state = copy.deepcopy(straight.state_dict())
    assert len(state["multi_step"]["action"]) > 0
    assert resumed.load_state_dict(state) is None
    run(straight, 400)
    run(resumed, 400)
    assert_same_state(straight.state_dict(), resumed.state_dict())


@pytest.mark.parametrize("saved_at", [20, 200])
def test_run_with_held_actions_and_normalized_rewards_resumes_exactly(saved_at):
    settings = {"exploration": "epsilon-z", "epsilon_middle": 0.8, "normalize_rewards": True, "n_step": 3}
    straight, resumed = (make_trainer(env=scaled(3.0, WalkEnv), **settings) for _ in range(2))
    for trainer in (straight, resumed):
        trainer.settle_budget(400)
    run(straight, saved_at)
    state = copy.deepcopy(straight.state_dict())
    assert (state["calibrator"]["found"] is None) == (saved_at < 40)
    assert state["exploration"]["left"].any()
    assert len(state["watch"]["earned"]["rewards"]) > 0
    assert resumed.load_state_dict(state) is None
    rows = [rows_without_clock(run(trainer, 400)) for trainer in (straight, resumed)]
    assert rows[0] == rows[1]
    assert straight.calibrator.found.scale == 3
    assert_same_state(straight.state_dict(), resumed.state_dict())


def test_run_of_an_older_version_goes_on():
    trainer, resumed = make_trainer(), make_trainer()
    run(trainer, 200)
    state = copy.deepcopy(trainer.state_dict()) | {"diverging": False}
    for name in ("watch", "exploration"):
        del state[name]
    del state["calibrator"]["scale"]
    resumed.load_state_dict(state)
    run(trainer, 400)
    run(resumed, 400)
    assert torch.equal(trainer.learner.theta, resumed.learner.theta)


def test_rows_tell_what_the_finished_episodes_earned():
    """Episodes of 5 steps are cut off, those of 8 terminate; at γ = 0 a return is its first reward."""
    last = run(make_trainer(env=scaled(2.0), gamma=0.0), 100)[-1]
    assert (last.earned_low, last.earned_high) == (2.0, 16.0)


def test_hasty_run_is_warned_of_at_its_first_row():
    events = run(make_trainer(learning_rate=0.01, target_period_updates=1), 100)
    warnings = [event for event in events if isinstance(event, Warned)]
    assert warnings[0].step == 52
    assert sum("is very short for learning_rate 0.01" in warning.message for warning in warnings) == 1


@pytest.mark.parametrize(("num_envs", "period"), [(4, 4), (1, 4), (3, 4), (8, 4), (4, 1), (4, 16)])
def test_there_is_one_update_per_period_after_the_warmup(num_envs, period):
    trainer = make_trainer(num_envs, update_period_steps=period)
    while trainer.steps < 160:
        run(trainer, trainer.steps + 1)
        assert trainer.learner.updates == max(0, (trainer.steps - 40) // period)


def test_warmup_is_uniformly_random_and_then_greedy_with_epsilon_0():
    trainer = make_trainer(epsilon_middle=1e-9, epsilon_final=0.0, epsilon_middle_fraction=0.0, warmup_steps=300)
    actions = []
    real = trainer.collector.step

    def step(chosen):
        actions.append(chosen)
        greedy.append(trainer.actor.greedy(trainer.collector.observation))
        return real(chosen)

    greedy = []
    trainer.collector.step = step
    run(trainer, 400)
    warm = np.concatenate(actions[:75])
    assert 0.4 < warm.mean() < 0.6
    assert not np.array_equal(warm, np.concatenate(greedy[:75]))
    assert np.array_equal(np.concatenate(actions[75:]), np.concatenate(greedy[75:]))


def test_priorities_are_set_from_the_updates_errors():
    trainer = make_trainer()
    given = []
    real = trainer.replay.update_priorities
    trainer.replay.update_priorities = lambda slots, errors: (given.append((slots, errors)), real(slots, errors))
    run(trainer, 48)
    assert [len(errors) for _, errors in given] == [8, 8]
    assert all((errors > 0).all() for _, errors in given)


def test_beta_and_epsilon_run_over_the_budget():
    trainer = make_trainer()
    trainer.settle_budget(400)
    assert (trainer.beta(), trainer.epsilon()) == (0.4, 1.0)
    run(trainer, 400)
    assert (trainer.beta(), trainer.epsilon()) == (1.0, 0.01)


def test_beta_begins_at_0_if_asked_to():
    trainer = make_trainer(beta_start=0.0)
    trainer.settle_budget(400)
    assert trainer.beta() == 0.0
    run(trainer, 200)
    assert trainer.beta() == pytest.approx(0.5)


def test_budget_of_the_schedules_is_not_that_of_a_single_call():
    trainer = make_trainer()
    trainer.settle_budget(400)
    run(trainer, 200)
    assert trainer.beta() == pytest.approx(0.7)


def test_progress_comes_at_each_logging_period_with_all_its_numbers():
    events = run(make_trainer(), 400)
    progress = [event for event in events if isinstance(event, Progress)]
    assert [p.step for p in progress] == [52, 100, 152, 200, 252, 300, 352, 400]
    last = progress[-1]
    assert last.update == 90
    assert last.loss > 0
    assert 0 <= last.statistics["dqn_share"] <= 1
    assert last.q_bound == pytest.approx(100)  # the rewards are 0 and 1, γ is 0.99
    assert last.gradient_norm > 0
    assert last.episodes > 10


@pytest.mark.parametrize("algorithm", ["dqn", "rg"])
def test_share_of_a_branch_is_not_reported_where_there_is_only_one(algorithm):
    events = run(make_trainer(algorithm=algorithm), 100)
    assert [
        event.statistics for event in events if isinstance(event, Progress) and "dqn_share" in event.statistics
    ] == []


def test_discarded_transitions_are_not_stored_but_learning_goes_on():
    trainer = make_trainer(discard_fraction=0.5, memory_size=1000)
    run(trainer, 400)
    assert 150 < len(trainer.replay) < 250
    assert trainer.learner.updates == 90


def test_learning_does_not_touch_global_random_states():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12345)  # a state that no trainer would leave behind by its own seeding
        torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002  it is the subject
        run(make_trainer(), 200)
        assert torch.equal(torch.get_rng_state(), torch_before)
    numpy_after = np.random.get_state()  # noqa: NPY002
    assert numpy_after[2] == numpy_before[2]
    assert np.array_equal(numpy_after[1], numpy_before[1])


def test_global_random_states_do_not_touch_learning():
    thetas = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            trainer = make_trainer()
            run(trainer, 200)
        thetas.append(trainer.learner.theta)
    assert torch.equal(*thetas)


def test_three_algorithms_see_the_same_random_warmup_from_the_same_weights():
    trainers = [make_trainer(algorithm=algorithm) for algorithm in ("cdqn", "dqn", "rg")]
    for trainer in trainers:
        run(trainer, 40)
    stores = [trainer.replay.state_dict()["store"] for trainer in trainers]
    for trainer, store in zip(trainers[1:], stores[1:], strict=True):
        assert torch.equal(trainer.learner.theta, trainers[0].learner.theta)
        for name, value in store.items():
            assert np.array_equal(value, stores[0][name]), name


def test_stop_ends_the_run_between_two_steps():
    trainer = make_trainer()
    for event in trainer.run(400):
        if isinstance(event, Progress) and event.step >= 100:
            trainer.stop()
    assert trainer.steps == 100
    run(trainer, 120)
    assert trainer.steps == 120, "a stop holds for one run only"


def test_divergence_is_warned_of_with_an_advice_for_the_algorithm():
    for algorithm, period, advice in (
        ("dqn", 100, "; use algorithm cdqn"),
        ("dqn", 50, "; lengthen target_period_updates (now 50), or use algorithm cdqn"),
        ("cdqn", 100, "; lower learning_rate (now 0.0005) or raise batch_size (now 8)"),
    ):
        trainer = make_trainer(algorithm=algorithm, target_period_updates=period)
        run(trainer, 40)
        trainer.learner.theta.mul_(20)  # Q far beyond r_max/(1−γ)
        trainer.learner.target.mul_(20)
        events = run(trainer, 200)
        warnings = [event for event in events if isinstance(event, Warned)]
        assert len(warnings) == 1
        assert warnings[0].message.startswith("training is diverging: ")
        assert warnings[0].message.endswith(advice)
        place = events.index(warnings[0])
        assert isinstance(events[place + 1], Progress)
        assert events[place + 1].step == warnings[0].step


def test_healthy_run_is_not_warned_of():
    assert not [event for event in run(make_trainer(), 400) if isinstance(event, Warned)]


def test_diverged_values_end_the_run_with_step_update_and_remedy():
    trainer = make_trainer(algorithm="dqn")
    run(trainer, 80)
    trainer.learner.target.fill_(float("inf"))
    with pytest.raises(NonFiniteError) as caught:
        run(trainer, 100)
    message = str(caught.value)
    assert "DQN diverged at step 84, update 11" in message
    assert "learning_rate" in message


@pytest.mark.parametrize("agent_class", [cdqn.CDQN, cdqn.DQN, cdqn.ResidualGradient])
def test_each_algorithm_learns_to_choose_rightly(agent_class):
    """Reward 1 for the action that the observation names; a random policy gets a third of it."""
    settings = {"hidden": (32,), "warmup_steps": 200, "learning_rate": 3e-3, "gamma": 0.5, "compile": "off"}
    if agent_class is not cdqn.ResidualGradient:
        settings["target_period_updates"] = 20
    agent = agent_class(ChoiceEnv(), seed=0, **settings)
    untrained = agent.evaluate(10).mean
    agent.learn(1_600)
    result = agent.evaluate(20)
    assert result.mean > 0.9 * 20
    assert untrained < 0.9 * 20


def test_table_acts_at_random_until_a_reward_has_been_seen():
    """On FrozenLake a run was greedy in first values before it had found the goal, and never found it."""
    agent = cdqn.CDQN("FrozenLake-v1", steps=1000, warmup_steps=40, hidden=(), compile="off", log_period_steps=1000)
    agent.learn(60)
    trainer = agent.trainer
    trainer.tally.reward_abs_max = 0.0
    assert trainer.epsilon() == 1.0
    trainer.tally.reward_abs_max = 1.0
    assert trainer.epsilon() < 1.0
    layered = make_trainer(epsilon_middle_fraction=0.2)
    run(layered, 60)
    layered.tally.reward_abs_max = 0.0
    assert layered.epsilon() < 1.0, "the exploration of layered networks is as it was"
