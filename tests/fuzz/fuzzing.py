"""How long the fuzzers look: a moment in `make test`, always at the same; in `make fuzz` round after round.

A round of `make fuzz` has a seed, CDQN_FUZZ_SEED: what is found in it is found again with that seed.
"""

import os

from hypothesis import HealthCheck, settings

ROUND = os.environ.get("CDQN_FUZZ_SEED")


def examples(in_tests: int, in_round: int) -> settings:
    """So many of Hypothesis's examples, always the same ones in `make test`; a failure prints how to repeat it."""
    return settings(
        max_examples=times(in_tests, in_round),
        derandomize=ROUND is None,
        deadline=None,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def times(in_tests: int, in_round: int) -> int:
    """How often a test does what takes seconds, such as starting processes."""
    return in_tests if ROUND is None else in_round


def seed_of_round() -> int:
    """0 in `make test`."""
    return int(ROUND or 0)
