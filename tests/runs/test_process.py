"""What a process of ours is told before it begins."""

import subprocess
import sys

PROGRAM = """
import resource, sys
import numpy as np
from cdqn.runs.process import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        [np.ones(4 << 20, np.uint8) for _ in range(3)]  # 3072 pages, freed together: more than glibc keeps by itself
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50

if sys.argv[1] == "kept":
    assert keep_freed_memory()
    faults()
print(faults())
"""


def test_freed_megabytes_are_not_paged_in_again():
    given_back, kept = (
        float(subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, check=True).stdout)
        for how in ("given back", "kept")
    )
    assert kept < 5
    assert given_back > 500, "this platform keeps freed memory by itself: the setting is idle here"
