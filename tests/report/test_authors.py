"""The authors' curves that are packed with the library."""

import numpy as np
import pytest

from cdqn.report.authors import authors_curves


@pytest.mark.parametrize("name", ["fig1_cliff_walking", "fig2_gamma_dependence", "fig3_one_way_cliff"])
def test_the_authors_curves_are_packed_with_the_library(name):
    for x, y in authors_curves(name).values():
        assert len(x) == len(y) > 100
        assert np.isfinite(x).all()
