"""What every worker needs and is slow to come by: imported by their server, before it forks them."""

import numpy as np

import cdqn.runs.run_pool  # noqa: F401
from cdqn.replay import kernels

kernels.first_outside(np.zeros(1, np.int64), 1)  # the first call of any kernel takes Numba a second and a half
