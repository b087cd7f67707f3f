"""How a figure is asked for."""

import pytest

from cdqn.errors import ConfigError
from cdqn.experiments.cooling import runs as cooling
from cdqn.experiments.request import SCALES, Request
from cdqn.experiments.section3 import cliff_walking, conditioning
from cdqn.experiments.wet_chicken import runs as wet_chicken
from cdqn.runs.workers.local import LocalPool


def test_a_scale_or_a_number_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="'huge': choose from smoke, laptop, paper"):
        Request("huge")
    with pytest.raises(ConfigError, match="jobs is 0"):
        Request(pool=LocalPool(0))
    with pytest.raises(ConfigError, match="runs is -1"):
        Request(runs=-1)


@pytest.mark.parametrize(
    "sizes",
    [
        cliff_walking.SIZES,
        conditioning.LENGTHS,
        conditioning.DISCOUNTS,
        conditioning.CYCLES,
        wet_chicken.SCALES,
        cooling.SCALES,
    ],
)
def test_every_experiment_has_every_scale(sizes):
    assert tuple(sizes) == SCALES
