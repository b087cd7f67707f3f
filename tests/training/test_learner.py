"""The learner: three algorithms, two backends, and the copy to the target network."""

import copy
import math
import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from cdqn.config import Config
from cdqn.errors import CheckpointError
from cdqn.nn.networks import MLP, BoardCNN, parameter_count
from helpers import assert_same_state, make_learner, random_batch, tensors
from helpers import train_learner as train

ALGORITHMS = ("cdqn", "dqn", "rg")


def test_three_algorithms_start_from_the_same_parameters():
    thetas = [make_learner(algorithm).theta for algorithm in ALGORITHMS]
    assert torch.equal(thetas[0], thetas[1])
    assert torch.equal(thetas[0], thetas[2])


def test_target_starts_as_a_copy_that_is_not_the_same_memory():
    learner = make_learner()
    assert torch.equal(learner.theta, learner.target)
    assert learner.theta.data_ptr() != learner.target.data_ptr()
    for mine, frozen in zip(learner.networks["q"].parameters(), learner.target_networks["q"].parameters(), strict=True):
        assert torch.equal(mine, frozen)


def test_networks_read_the_flat_vectors():
    learner = make_learner()
    observation = torch.ones(1, 4)
    learner.theta.zero_()
    assert torch.count_nonzero(learner.networks["q"](observation)) == 0
    assert torch.count_nonzero(learner.target_networks["q"](observation)) > 0
    learner.target.zero_()
    assert torch.count_nonzero(learner.target_networks["q"](observation)) == 0


@pytest.mark.parametrize("algorithm", ["cdqn", "dqn"])
def test_copied_target_is_theta_from_before_that_very_update(algorithm):
    learner = make_learner(algorithm, target_period_updates=3, gamma=0.9)
    rng = np.random.default_rng(0)
    for update in range(1, 13):
        theta_before, target_before = learner.theta.clone(), learner.target.clone()
        learner.update(random_batch(rng))
        assert not torch.equal(learner.theta, theta_before)
        if update % 3 == 0:
            assert torch.equal(learner.target, theta_before)
            assert not torch.equal(learner.target, learner.theta)
        else:
            assert torch.equal(learner.target, target_before), "the target moved between two copies"


def test_exact_copy_is_theta_after_the_update():
    learner = make_learner(target_period_updates=3, target_copy="exact")
    rng = np.random.default_rng(0)
    for update in range(1, 10):
        target_before = learner.target.clone()
        learner.update(random_batch(rng))
        assert torch.equal(learner.target, learner.theta if update % 3 == 0 else target_before)


def test_update_that_copies_is_itself_computed_with_the_old_target():
    copying, keeping = (make_learner(target_period_updates=period) for period in (3, 1000))
    for seed in (0, 1, 2):
        for learner in (copying, keeping):
            train(learner, 1, seed)
    assert torch.equal(copying.theta, keeping.theta)
    assert not torch.equal(copying.target, keeping.target)


def test_period_unless_set_is_the_configurations_and_counted_in_updates():
    learner = make_learner()
    period = Config().resolved().target_period_updates
    start = learner.target.clone()
    train(learner, period - 1)
    assert torch.equal(learner.target, start)
    before = learner.theta.clone()
    train(learner, 1, seed=1)
    assert torch.equal(learner.target, before)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_over_n_steps_the_next_value_is_discounted_n_times(algorithm):
    batch = tensors(random_batch(np.random.default_rng(0)))
    three, cubed = (make_learner(algorithm, gamma=gamma, n_step=n) for gamma, n in ((0.9, 3), (0.9**3, 1)))
    once = make_learner(algorithm, gamma=0.9)
    torch.testing.assert_close(three.assess(batch).loss, cubed.assess(batch).loss)
    assert not torch.allclose(three.assess(batch).loss, once.assess(batch).loss)


def literal_q(network, observation):
    return network(torch.from_numpy(observation)).detach().double().numpy()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("double_q", [True, False])
def test_update_reports_what_the_equations_say(algorithm, double_q):
    learner = make_learner(algorithm, gamma=0.9, **({} if algorithm == "rg" else {"double_q": double_q}))
    train(learner, 20)
    batch = random_batch(np.random.default_rng(7))
    all_q = literal_q(learner.networks["q"], batch.observation)
    q = all_q[np.arange(32), batch.action]
    online, frozen = (
        literal_q(n, batch.next_observation) for n in (learner.networks["q"], learner.target_networks["q"])
    )
    dqn_next = frozen[np.arange(32), online.argmax(1)] if double_q else frozen.max(1)
    alive = 0.9 * ~batch.terminated
    delta_dqn = np.abs(q - batch.reward - alive * dqn_next)
    delta_msbe = np.abs(q - batch.reward - alive * online.max(1))
    delta = {"dqn": delta_dqn, "rg": delta_msbe, "cdqn": np.maximum(delta_dqn, delta_msbe)}[algorithm]
    result = learner.update(batch)
    np.testing.assert_allclose(result.td_error_abs, delta, rtol=1e-4, atol=1e-5)
    assert result.statistics["loss"] == pytest.approx(np.mean(batch.weight * delta**2), rel=1e-4)
    assert result.statistics["q_mean"] == pytest.approx(all_q.max(1).mean(), rel=1e-4), "of the online network, for all"
    if algorithm == "cdqn":
        assert result.statistics["dqn_share"] == pytest.approx(np.mean(delta_dqn >= delta_msbe))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_transform_reports_errors_and_values_in_units_of_q_and_the_loss_in_units_of_f(algorithm):
    learner = make_learner(algorithm, value_transform=True, gamma=0.9)
    train(learner, 20)
    batch = random_batch(np.random.default_rng(7))
    all_f = literal_q(learner.networks["q"], batch.observation)
    f = all_f[np.arange(32), batch.action]
    online, frozen = (
        literal_q(n, batch.next_observation) for n in (learner.networks["q"], learner.target_networks["q"])
    )
    alive = 0.9 * ~batch.terminated
    y_dqn = batch.reward + alive * literal_inverse(frozen[np.arange(32), online.argmax(1)])
    y_msbe = batch.reward + alive * literal_inverse(online.max(1))
    chosen = {"dqn": [y_dqn], "rg": [y_msbe], "cdqn": [y_dqn, y_msbe]}[algorithm]
    result = learner.update(batch)
    delta_q = np.max([np.abs(literal_inverse(f) - y) for y in chosen], axis=0)
    delta_f = np.max([np.abs(f - literal_transform(y)) for y in chosen], axis=0)
    np.testing.assert_allclose(result.td_error_abs, delta_q, rtol=1e-3, atol=1e-4)
    assert result.statistics["loss"] == pytest.approx(np.mean(batch.weight * delta_f**2), rel=1e-4)
    assert result.statistics["q_mean"] == pytest.approx(literal_inverse(all_f.max(1)).mean(), rel=1e-3, abs=1e-5)


def literal_transform(q):
    return np.sign(q) * (np.sqrt(np.abs(q) + 1) - 1) + 0.01 * q


def literal_inverse(f):
    return np.sign(f) * (((np.sqrt(1 + 0.04 * (np.abs(f) + 1.01)) - 1) / 0.02) ** 2 - 1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("loss", ["huber", "mse"])
def test_gradient_of_an_update_equals_finite_differences(algorithm, loss):
    """In float64, at a point where θ̃ ≠ θ: the first moment after one step holds a tenth of the gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = MLP(3, 2, (5,)).double()
    learner = make_learner(algorithm, network=network, loss=loss, gradient_clip_norm=math.inf, gamma=0.9)
    learner.target.mul_(0.7)
    batch = random_batch(np.random.default_rng(3), 16, observations=3, dtype=np.float64)

    def objective(theta):
        saved = learner.theta.clone()
        learner.theta.copy_(theta)
        value = learner.assess(tensors(batch)).loss.mean().item()
        learner.theta.copy_(saved)
        return value

    theta = learner.theta.clone()
    numeric = torch.zeros_like(theta)
    for index in range(len(theta)):
        step = torch.zeros_like(theta)
        step[index] = 1e-6
        numeric[index] = (objective(theta + step) - objective(theta - step)) / 2e-6
    learner.update(batch)
    torch.testing.assert_close(learner.first_moment * 10, numeric, rtol=1e-5, atol=1e-7)


def test_gradient_is_clipped_to_the_norm_and_reported_before():
    batch = random_batch(np.random.default_rng(0))
    free, clipped = make_learner(gradient_clip_norm=math.inf), make_learner(gradient_clip_norm=0.01)
    norm = free.update(batch).statistics["gradient_norm"]
    assert clipped.update(batch).statistics["gradient_norm"] == pytest.approx(norm, rel=1e-6)
    assert norm > 0.1
    assert (10 * free.first_moment).norm().item() == pytest.approx(norm, rel=1e-5)
    assert (10 * clipped.first_moment).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_gradients_do_not_accumulate_from_one_update_to_the_next():
    learner = make_learner("dqn", target_period_updates=1000)
    batch = random_batch(np.random.default_rng(0))
    norms = [learner.update(batch).statistics["gradient_norm"] for _ in range(5)]
    assert max(norms) < 1.5 * norms[0]


def compare_backends(algorithm, network=None, make_batch=random_batch, updates=30, **settings):
    """Both backends go through the same batches, and must stay together."""
    learners = []
    for compile_setting in ("off", "on"):
        own_network = copy.deepcopy(network)
        learner = make_learner(algorithm, network=own_network, compile=compile_setting, **settings)
        assert learner.choose_backend(updates) == {"off": "eager", "on": "compiled"}[compile_setting]
        learners.append(learner)
    eager, compiled = learners
    rng = np.random.default_rng(0)
    for _ in range(updates):
        batch = make_batch(rng)
        one, other = eager.update(batch), compiled.update(batch)
        np.testing.assert_allclose(other.td_error_abs, one.td_error_abs, rtol=1e-3, atol=1e-4)
        assert other.statistics == pytest.approx(one.statistics, rel=1e-3, abs=1e-4)
    for name in ("theta", "target", "first_moment", "second_moment"):
        torch.testing.assert_close(getattr(compiled, name), getattr(eager, name), rtol=1e-3, atol=1e-5)
    assert compiled.backend == "compiled", "it fell back to eager: the comparison compared nothing"


def test_compiled_cdqn_equals_eager():
    compare_backends("cdqn", target_period_updates=7)


def test_slow_copy_moves_by_its_share_of_the_way_after_every_tenth_update():
    learner = make_learner("dcdqn", target_period_updates=7)
    length = parameter_count(learner.networks["q"])
    expected = learner.theta[:length].clone()
    for update in range(1, 34):
        train(learner, 1)
        if update % 10 == 0:
            expected += (learner.theta[:length] - expected) * 10 / 50
        torch.testing.assert_close(learner.slow[:length], expected)
    assert (learner.target[:length] != learner.slow[:length]).any()
    observation = torch.zeros(1, 4)
    slow_q = learner._frozen["q_slow"](observation)
    learner.slow[:length] += 1  # the copy is the one that is called
    assert (learner._frozen["q_slow"](observation) != slow_q).any()


def test_slow_copy_is_saved_and_only_where_there_is_one():
    learner, other = make_learner("dcdqn"), make_learner("dcdqn", seed=1)
    train(learner, 13)
    assert (other.slow != learner.slow).any()
    other.load_state_dict(learner.state_dict())
    assert (other.slow == learner.slow).all()
    assert "slow" not in make_learner("cdqn").state_dict()


def test_slow_copy_has_the_buffers_that_the_network_had_when_it_moved():
    network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    learner, other = (make_learner("dcdqn", network=copy.deepcopy(network)) for _ in range(2))
    train(learner, 10)
    moved = dict(learner.networks.named_buffers())["q.1.running_mean"].clone()
    train(learner, 2)
    other.load_state_dict(learner.state_dict())
    for each in (learner, other):
        assert (dict(each.slow_networks.named_buffers())["q.1.running_mean"] == moved).all()
    assert (dict(other.networks.named_buffers())["q.1.running_mean"] != moved).any()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["dqn", "rg", "dcdqn"])
def test_compiled_dqn_rg_and_dcdqn_equal_eager(algorithm):
    compare_backends(algorithm, **({} if algorithm == "rg" else {"target_period_updates": 7}))


@pytest.mark.slow
def test_compiled_cdqn_with_transform_and_squared_loss_equals_eager():
    compare_backends("cdqn", target_period_updates=7, value_transform=True, loss="mse", double_q=False)


def minatar_batch(rng):
    boards = rng.random((2, 32, 10, 10, 4)) < 0.2
    return random_batch(rng)._replace(observation=boards[0], next_observation=boards[1])


@pytest.mark.slow
def test_compiled_minatar_network_equals_eager():
    network = BoardCNN((10, 10, 4), 2, filters=4, width=16)
    compare_backends("cdqn", network, minatar_batch, target_period_updates=7)


@pytest.mark.usefixtures("quick_compile")
def test_compiled_learners_of_one_process_do_not_run_each_others_update():
    """torch.compile files programs under the code object: without guards a second learner once got the first's."""
    compare_backends("cdqn", updates=4, target_period_updates=2)
    compare_backends("dqn", updates=4, target_period_updates=2, gamma=0.5)


def test_whoever_wants_to_know_is_told_while_a_program_is_built_and_only_then(monkeypatch):
    monkeypatch.setattr("cdqn.training.learner.compile_for", lambda function, inputs: told.append("build") or function)
    told = []

    @contextmanager
    def tell():
        told.append("begin")
        yield
        told.append("end")

    eager, compiled = make_learner(), make_learner(compile="on")
    for learner in (eager, compiled):
        learner.choose_backend(1)
        learner.while_compiling = tell
    train(eager, 2)
    assert told == []
    train(compiled, 3)
    assert told == ["begin", "build", "end"]


@pytest.mark.usefixtures("quick_compile")
def test_compiled_learner_takes_batches_of_several_sizes():
    eager, compiled = make_learner(), make_learner(compile="on")
    compiled.choose_backend(1)
    for seed, size in enumerate((8, 12, 8)):
        one, other = (train(learner, 1, seed, size=size)[0] for learner in (eager, compiled))
        np.testing.assert_allclose(other.td_error_abs, one.td_error_abs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("setting", "updates", "backend"),
    [("off", 10**9, "eager"), ("auto", 100, "eager"), ("auto", 10**6, "compiled"), ("on", 1, "compiled")],
)
def test_backend_is_compiled_where_it_is_wanted_and_pays(setting, updates, backend):
    assert make_learner(compile=setting).choose_backend(updates) == backend


def test_backend_is_eager_for_a_large_network():
    learner = make_learner(network=MLP(4, 2, (800, 800)), compile="auto")
    assert learner.choose_backend(10**6) == "eager"


def test_missing_compiler_gives_eager_silently(monkeypatch, recwarn, capfd):
    monkeypatch.setenv("CXX", "/nowhere/no-such-compiler")
    learner = make_learner(compile="on")
    assert learner.choose_backend(10**6) == "eager"
    train(learner, 1)
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def test_checkpoint_of_a_compiled_run_goes_on_eagerly_without_a_compiler(monkeypatch):
    learner = make_learner(compile="on")
    learner.choose_backend(1)
    state = learner.state_dict()
    assert state["backend"] == "compiled"
    monkeypatch.setenv("CXX", "/nowhere/no-such-compiler")
    other = make_learner(compile="on")
    other.load_state_dict(state)
    assert other.backend == "eager"
    train(other, 1)


@pytest.mark.slow
def test_compiler_that_is_there_but_fails_leaves_updates_working(tmp_path):
    """A fresh process with caches off: a kernel found in a cache would need no compiler."""
    script = """
        import numpy as np, torch
        from helpers import make_learner, random_batch
        torch.set_num_threads(1)
        eager, broken = make_learner(), make_learner(compile="on")
        assert broken.choose_backend(10) == "compiled"
        rng = np.random.default_rng(0)
        for _ in range(3):
            batch = random_batch(rng)
            one, other = eager.update(batch), broken.update(batch)
            assert np.array_equal(one.td_error_abs, other.td_error_abs)
        assert broken.backend == "eager" and broken.updates == 3
        assert torch.equal(eager.theta, broken.theta)
        print("updates work")
    """
    environment = os.environ | {
        "CXX": "/bin/false",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)]),
    }
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert process.stdout.strip() == "updates work", process.stderr[-3000:]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_state_goes_round_bit_for_bit(algorithm):
    settings = {} if algorithm == "rg" else {"target_period_updates": 7}
    straight = make_learner(algorithm, **settings)
    train(straight, 10)
    saved = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in straight.state_dict().items()}
    resumed = make_learner(algorithm, seed=99, **settings)
    resumed.load_state_dict(saved)
    results = [train(learner, 20, seed=5) for learner in (straight, resumed)]
    assert_same_state(straight.state_dict(), resumed.state_dict())
    for one, other in zip(*results, strict=True):
        assert one.td_error_abs.tobytes() == other.td_error_abs.tobytes()
        assert one[1:] == other[1:]


def test_loaded_state_reaches_both_networks():
    one, other = make_learner(seed=0), make_learner(seed=1)
    train(one, 5)
    other.load_state_dict(one.state_dict())
    observation = torch.ones(1, 4)
    assert torch.equal(other.networks["q"](observation), one.networks["q"](observation))
    assert torch.equal(other.target_networks["q"](observation), one.target_networks["q"](observation))


def test_state_of_another_network_is_refused():
    with pytest.raises(CheckpointError, match="another network"):
        make_learner().load_state_dict(make_learner(network=MLP(5, 2, (16, 16))).state_dict())


def test_q_values_are_in_units_of_q():
    network = MLP(4, 2, (8,))
    learner = make_learner(network=network, value_transform=True)
    observation = torch.ones(1, 4)
    expected = literal_inverse(network(observation).detach().double().numpy())
    np.testing.assert_allclose(learner.q_values(observation).detach().numpy(), expected, rtol=1e-4)


def test_share_of_the_dqn_branch_is_reported_by_cdqn_alone_and_between_0_and_1():
    for algorithm in ("dqn", "rg"):
        assert set(train(make_learner(algorithm), 1)[0].statistics) == {"loss", "q_mean", "gradient_norm"}
    shares = [result.statistics["dqn_share"] for result in train(make_learner("cdqn"), 30)]
    assert shares[0] == 1.0  # θ̃ = θ: all samples tie
    assert all(0 <= share <= 1 for share in shares)
    assert any(0 < share < 1 for share in shares)


def test_first_update_of_cdqn_is_that_of_dqn_because_all_samples_tie():
    cdqn, dqn = make_learner("cdqn"), make_learner("dqn")
    batch = random_batch(np.random.default_rng(0))
    ours, theirs = cdqn.update(batch), dqn.update(batch)
    assert ours.statistics["loss"] == pytest.approx(theirs.statistics["loss"], rel=1e-6)
    assert ours.statistics["gradient_norm"] == pytest.approx(theirs.statistics["gradient_norm"], rel=1e-5)
    torch.testing.assert_close(cdqn.theta, dqn.theta, rtol=1e-5, atol=1e-6)


def test_rg_never_copies():
    learner = make_learner("rg")
    start = learner.target.clone()
    train(learner, 450, size=4)
    assert torch.equal(learner.target, start)
    assert not torch.equal(learner.theta, start)
