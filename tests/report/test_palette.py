"""Names, colours and order of algorithms: ours as their classes say, those of users beside them."""

from cdqn import algorithms
from cdqn.report.palette import ALGORITHMS, OTHER_COLOURS, appearance, in_order


def test_our_algorithms_look_as_their_classes_say():
    for name, algorithm in algorithms.ALGORITHMS.items():
        assert appearance(name, among=["mine:Other"]) == (algorithm.label, algorithm.colour)


def test_no_two_algorithms_share_a_colour():
    colours = [*(look.colour for look in ALGORITHMS.values()), *OTHER_COLOURS]
    assert len({colour.lower() for colour in colours}) == len(colours)


def test_users_algorithm_has_the_name_of_its_class_and_a_colour_by_its_place_among_the_users():
    mine, yours = "pieces.mine:Expected", "pieces.yours:Expected"
    assert appearance(mine) == ("Expected", OTHER_COLOURS[0])
    assert appearance(mine, ["cdqn", yours]) == ("Expected", OTHER_COLOURS[0])
    assert appearance(yours, ["cdqn", mine]) == ("Expected", OTHER_COLOURS[1])


def test_more_algorithms_than_colours_still_have_one_each():
    names = [f"pieces:Number{i}" for i in range(len(OTHER_COLOURS) + 1)]
    assert appearance(names[-1], names).colour == OTHER_COLOURS[0]


def test_order_is_the_house_order_and_then_the_users_by_name():
    assert in_order(["b:B", "rg", "a:A", "cdqn", "rg"]) == ["cdqn", "rg", "a:A", "b:B"]
