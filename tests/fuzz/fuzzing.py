"""How long the fuzzers look: a moment in `make test`, as long as one likes in `make fuzz`.

CDQN_FUZZ_EXAMPLES is how many examples Hypothesis makes for each test, CDQN_FUZZ_SEED the seed of the round, and
CDQN_FUZZ_KILLS how often processes are killed, started in pairs or starved of disk in each test that does so.
"""

import os

from hypothesis import HealthCheck, settings


def examples(in_tests: int) -> settings:
    """So many in `make test`, always the same; in `make fuzz` as many as were asked for, from its seed.

    A failure prints how to repeat it.
    """
    asked = int(os.environ.get("CDQN_FUZZ_EXAMPLES", "0"))
    return settings(
        max_examples=asked or in_tests,
        derandomize=not asked,
        deadline=None,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def kills(in_tests: int) -> int:
    """How often a test that starts processes does so."""
    return int(os.environ.get("CDQN_FUZZ_KILLS", in_tests))


def seed_of_round() -> int:
    """0 in `make test`."""
    return int(os.environ.get("CDQN_FUZZ_SEED", "0"))
