"""Memory that is free within the heap goes back to the system."""

import subprocess
import sys

import pytest

_PROGRAM = """
import psutil
from crag.runtime.memory import give_back_memory
def used():
    return psutil.Process().memory_info().rss / 1e6
give_back_memory()
before = used()
blocks = [bytes(2_000) for _ in range(50_000)]
last = bytearray(2_000)
most = used()
del blocks
give_back_memory()
print(most - before, used() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps it")
def test_what_lies_below_memory_in_use_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    most, left = map(float, done.stdout.split())
    assert most > 80
    assert left < most / 4
