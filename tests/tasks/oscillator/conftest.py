"""The basis that the environment has."""

import pytest

from cdqn.tasks import oscillator as physics


@pytest.fixture(scope="package")
def basis():
    return physics.make_basis(40)
