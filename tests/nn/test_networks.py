"""The networks of App. E.1: shapes, initialisation, the dueling identity, and the NumPy twin."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from cdqn.nn.networks import MLP, BoardCNN, DuelingCNN, Table, dueling_q, make_network, parameter_count

ATARI = (4, 105, 80)
BUILDERS = {
    "mlp": lambda: MLP(4, 3, (32, 16)),
    "plain mlp": lambda: MLP(4, 3, (32, 16), dueling=False),
    "minatar": lambda: BoardCNN((10, 10, 4), 6),
    "atari": lambda: DuelingCNN(ATARI, 6),
}


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def test_atari_frames_give_4480_features_with_a_padding_of_2():
    network = DuelingCNN(ATARI, 6)
    assert [convolution.padding for convolution in network.convolutions] == [(2, 2), (0, 0), (0, 0)]
    assert network.head.hidden.weight.shape == (1024, 4480)
    assert network(torch.zeros(2, *ATARI, dtype=torch.uint8)).shape == (2, 6)


def test_atari_padding_is_of_zeros():
    network = DuelingCNN(ATARI, 2)
    frame = torch.full((1, *ATARI), 255.0)
    padded = nn.functional.pad(frame / 255, (2, 2, 2, 2))
    first = network.convolutions[0]
    by_hand = nn.functional.conv2d(padded, first.weight, first.bias, stride=4)
    torch.testing.assert_close(first(frame / 255), by_hand)


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_every_layer_is_he_uniform_with_zero_biases(build):
    layers = [layer for layer in build().modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    assert len(layers) >= 3
    for layer in layers:
        bound = math.sqrt(6 / layer.weight[0].numel())
        largest = layer.weight.abs().max().item()
        assert largest <= bound
        if layer.weight.numel() >= 100:
            assert largest > 0.9 * bound
            assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.15)
        assert torch.count_nonzero(layer.bias) == 0


@pytest.mark.parametrize("shape", [(4,), (10, 10, 4), ATARI], ids=["mlp", "minatar", "atari"])
def test_pytorchs_own_weights_and_biases_are_uniform_within_one_over_the_root_of_the_inputs(shape):
    network = make_network(shape, 6, (128, 128), initial_weights="pytorch", board=shape[0] == 10)
    for layer in (layer for layer in network.modules() if isinstance(layer, nn.Linear | nn.Conv2d)):
        bound = 1 / math.sqrt(layer.weight[0].numel())
        for values in (layer.weight, layer.bias):
            largest = values.abs().max().item()
            assert 0 < largest <= bound * (1 + 1e-6)
            if values.numel() >= 100:
                assert largest > 0.9 * bound


def test_dueling_removes_the_mean_advantage():
    value, advantage = torch.tensor([[10.0], [0.0]]), torch.tensor([[1.0, 2.0, 6.0], [-1.0, 0.0, 1.0]])
    assert dueling_q(value, advantage).tolist() == [[8.0, 9.0, 13.0], [-1.0, 0.0, 1.0]]


@pytest.mark.parametrize("name", ["mlp", "minatar"])
def test_mean_q_of_a_dueling_network_is_its_value_stream(name):
    network = BUILDERS[name]()
    shape = (4,) if name == "mlp" else (10, 10, 4)
    observation = torch.rand(5, *shape)
    before = network(observation)
    with torch.no_grad():
        network.head.advantage.bias += 7.0
    torch.testing.assert_close(network(observation), before)
    with torch.no_grad():
        network.head.value.bias += 7.0
    torch.testing.assert_close(network(observation), before + 7)


def test_the_two_streams_do_not_share_hidden_units():
    network = MLP(4, 3, (32, 16))
    observation = torch.rand(5, 4)
    before = network(observation)
    with torch.no_grad():
        network.head.hidden.bias[:16] += 1.0  # those of the value
    difference = network(observation) - before
    torch.testing.assert_close(difference, difference[:, :1].expand(-1, 3))
    assert difference.abs().min() > 0


def test_atari_bytes_are_scaled_to_the_unit_interval():
    network = DuelingCNN(ATARI, 2)
    frame = torch.randint(0, 256, (1, *ATARI), dtype=torch.uint8)
    features = frame.float() / 255
    for convolution in network.convolutions:
        features = torch.relu(convolution(features))
    by_hand = network.head(features.flatten(1))
    torch.testing.assert_close(network(frame), by_hand)


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("hidden", [(16,), (32, 16), (8, 8, 8)])
def test_numpy_forward_equals_forward_and_follows_the_weights(hidden, dueling):
    network = MLP(5, 3, hidden, dueling)
    forward = network.numpy_forward()
    observation = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    for _ in range(2):
        expected = network(torch.from_numpy(observation)).detach().numpy()
        np.testing.assert_allclose(forward(observation), expected, rtol=1e-4, atol=1e-4)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += torch.randn_like(parameter)


def test_numpy_forward_leaves_its_input_alone():
    network = MLP(3, 2, (4,))
    observation = np.array([[-1.0, -2.0, 3.0]], np.float32)
    network.numpy_forward()(observation)
    assert observation.tolist() == [[-1.0, -2.0, 3.0]]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float64])
def test_mlp_takes_observations_of_any_type(dtype):
    network = MLP(4, 2, (8,))
    observation = np.array([[0, 1, 1, 0]], dtype)
    q = network(torch.from_numpy(observation))
    assert q.dtype == torch.float32
    np.testing.assert_allclose(network.numpy_forward()(observation), q.detach().numpy(), rtol=1e-5)


def test_double_network_computes_in_double():
    network = MLP(4, 2, (8,)).double()
    assert network(torch.zeros(1, 4, dtype=torch.float32)).dtype == torch.float64


def test_minatar_network_sees_channels_last():
    network = BoardCNN((10, 10, 4), 6)
    assert network.convolution.weight.shape == (16, 4, 3, 3)
    assert network.head.hidden.weight.shape == (2 * 128, 16 * 8 * 8)
    board = torch.zeros(1, 10, 10, 4, dtype=torch.bool)
    assert network(board).shape == (1, 6)
    assert torch.count_nonzero(network(board)) == 0
    board[0, 0, 9, 2] = True  # a corner: seen by one window only, with the third channel
    seen = torch.relu(network.convolution.weight[:, 2, 0, 2])
    features = torch.zeros(1, 16, 8, 8)
    features[0, :, 0, 7] = seen
    torch.testing.assert_close(network(board), network.head(features.flatten(1)))


def test_parameter_counts_by_hand():
    assert parameter_count(MLP(4, 3, (32, 16))) == (4 * 32 + 32) + (32 * 32 + 32) + (16 * 3 + 3) + (16 + 1)
    assert parameter_count(MLP(4, 3, (32, 16), dueling=False)) == (4 * 32 + 32) + (32 * 16 + 16) + (16 * 3 + 3)
    assert parameter_count(BoardCNN((10, 10, 4), 6)) == (
        (4 * 9 * 16 + 16) + (1024 * 256 + 256) + (128 * 6 + 6) + (128 + 1)
    )
    convolutions = (4 * 64 * 32 + 32) + (32 * 16 * 64 + 64) + (64 * 9 * 64 + 64)
    assert parameter_count(DuelingCNN(ATARI, 6)) == (convolutions + (4480 * 1024 + 1024) + (512 * 6 + 6) + (512 + 1))


def test_make_network_chooses_by_the_shape():
    assert isinstance(make_network((4,), 2), MLP)
    assert isinstance(make_network((10, 10, 4), 6, (64,), board=True), BoardCNN)
    atari = make_network(ATARI, 6, (512,))
    assert isinstance(atari, DuelingCNN)
    assert atari.head.width == 512
    assert make_network((4,), 2, (8,), dueling=False).head.value is None


def test_table_shares_nothing_between_states_and_has_a_twin_in_numpy():
    network = make_network((5,), 3, hidden=())
    assert isinstance(network, Table)
    assert parameter_count(network) == 15
    codes = torch.eye(5, dtype=torch.int8)
    network(codes[2:3])[0, 1].backward()
    assert network.q_SA.grad.nonzero().tolist() == [[2, 1]]
    acting = network.numpy_forward()
    with torch.no_grad():
        assert torch.all((network.q_SA - 1).abs() < 0.2), "what has not been tried looks good"
        assert len(network.q_SA.unique()) == 15
        network.q_SA[2, 1] = 7.0
    assert acting(codes.numpy())[2, 1] == 7.0, "on the memory of the weights"
    np.testing.assert_array_equal(acting(codes.numpy()), network(codes).detach().numpy())
