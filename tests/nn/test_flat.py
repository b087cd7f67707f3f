"""Parameters in one vector: the same memory, in the order that the module had."""

import torch
from torch import nn

from cdqn.nn.flat import flat_of, flatten_, point_, views


def network(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Conv2d(3, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))


def test_parameters_become_views_of_the_vector_and_keep_their_values():
    module, before = network(), network()
    flat = flatten_(module)
    assert flat.shape == (sum(parameter.numel() for parameter in module.parameters()),)
    for mine, old in zip(module.parameters(), before.parameters(), strict=True):
        assert torch.equal(mine, old)
    flat.zero_()
    assert not any(parameter.count_nonzero() for parameter in module.parameters())
    with torch.no_grad():
        module[3].bias.fill_(2.0)
    assert flat[-2:].tolist() == [2.0, 2.0]


def test_module_that_is_pointed_at_a_vector_computes_with_it():
    one, other = network(0), network(1)
    flat = flatten_(one)
    point_(other, flat)
    images = torch.ones(1, 3, 3, 3)
    assert torch.equal(one(images), other(images))
    assert other[0].weight.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()


def test_channels_last_weights_stay_so_and_keep_their_values():
    module, before = network().to(memory_format=torch.channels_last), network()
    flat = flatten_(module)
    weight = module[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()
    assert torch.equal(weight, before[0].weight)
    assert torch.equal(flat[: weight.numel()], before[0].weight.detach().permute(0, 2, 3, 1).reshape(-1))
    images = torch.ones(1, 3, 3, 3)
    torch.testing.assert_close(module(images), before(images))


def test_pieces_are_named_and_go_back_to_where_they_came_from():
    module = network().to(memory_format=torch.channels_last)
    flat = flatten_(module).clone()
    pieces = views(module, flat)
    assert list(pieces) == [name for name, _ in module.named_parameters()]
    again = torch.cat([flat_of(pieces[name], parameter) for name, parameter in module.named_parameters()])
    assert torch.equal(again, flat)
