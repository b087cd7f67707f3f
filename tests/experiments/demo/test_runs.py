"""The runs of the demo at a small scale, and once as they are."""

import dataclasses

import numpy as np
import pytest

from cdqn.errors import CdqnError, ConfigError
from cdqn.experiments.demo.offline import History, collect_random, train_offline
from cdqn.experiments.demo.runs import DemoSetting, run_demo


def test_all_algorithms_of_a_seed_see_the_same_data_and_no_two_seeds_do(small):
    digests = {seed: {run.data_digest for run in small.runs if run.seed == seed} for seed in small.seeds}
    assert [len(of_seed) for of_seed in digests.values()] == [1, 1]
    assert len(set.union(*digests.values())) == 2


def test_all_algorithms_of_a_seed_start_from_the_same_weights(small):
    for seed in small.seeds:
        assert len({run.history.return_E[0] for run in small.runs if run.seed == seed}) == 1


def test_algorithms_differ_in_nothing_but_the_loss(small_setting):
    cdqn, dqn, rg = (small_setting.config(name, 7).to_json() for name in ("cdqn", "dqn", "rg"))
    assert {name for name in cdqn if cdqn[name] != dqn[name]} == {"algorithm"}
    assert {name for name in cdqn if cdqn[name] != rg[name]} == {"algorithm", "double_q", "target_period_updates"}


@pytest.mark.slow
def test_result_does_not_depend_on_jobs_and_progress_reaches_the_end(small, small_setting):
    told = []
    parallel = run_demo(2, jobs=2, on_progress=lambda *progress: told.append(progress), setting=small_setting)
    assert told[-1] == (360, 360)
    assert told == sorted(told)
    for here, there in zip(small.runs, parallel.runs, strict=True):
        assert (here.algorithm, here.seed, here.data_digest) == (there.algorithm, there.seed, there.data_digest)
        for field in dataclasses.fields(History):
            np.testing.assert_array_equal(getattr(here.history, field.name), getattr(there.history, field.name))


def test_error_in_a_worker_names_the_run(small_setting):
    with pytest.raises(CdqnError, match=r"seed 100 failed.*no environment 'CartPool-v1'"):
        run_demo(1, jobs=1, setting=dataclasses.replace(small_setting, env_id="CartPool-v1"))


@pytest.mark.parametrize(("seeds", "jobs"), [(0, 1), (1, 0)])
def test_no_seeds_or_jobs_are_refused(seeds, jobs):
    with pytest.raises(ConfigError, match="at least 1"):
        run_demo(seeds, jobs)


@pytest.mark.slow
def test_dqn_exceeds_the_bound_tenfold_and_cdqn_stays_within_it():
    """In a sixth of the demo's updates."""
    result = run_demo(1, jobs=2, setting=DemoSetting(updates=2_500))
    (cdqn,), (dqn,), (rg,) = (result.of(name) for name in ("cdqn", "dqn", "rg"))
    assert dqn.history.q_T[-1] > 10 * result.setting.bound
    assert cdqn.history.largest_q < 1.5 * result.setting.bound
    assert [result.diverged(run) for run in (cdqn, dqn, rg)] == [False, True, False]
    assert dqn.history.loss_T[-1] > 1e6 * cdqn.history.loss_T[-1]


@pytest.mark.slow
def test_compiled_training_of_one_algorithm_after_another_is_that_of_the_eager_one(small_setting):
    """Compiled updates once ran the program of the first learner of the process for every later one."""
    data = collect_random("CartPole-v1", 200, seed=0)
    for algorithm in ("cdqn", "dqn", "rg"):
        losses = []
        for backend in ("off", "on"):
            config = dataclasses.replace(small_setting.config(algorithm, 0), compile=backend)
            record = train_offline(data, config, 40, record_every=40, evaluate_every=40, evaluation_episodes=1)
            losses.append(record.loss_T[-1])
        assert losses[1] == pytest.approx(losses[0], rel=1e-3), algorithm
