"""How long the fuzzers look: a moment in `make test`, as long as one likes in `make fuzz` (CDQN_FUZZ_EXAMPLES)."""

import os

from hypothesis import HealthCheck, settings


def examples(in_tests: int) -> settings:
    """So many in `make test`; in `make fuzz` as many as were asked for. A failure prints how to repeat it."""
    return settings(
        max_examples=int(os.environ.get("CDQN_FUZZ_EXAMPLES", "0")) or in_tests,
        deadline=None,
        print_blob=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
