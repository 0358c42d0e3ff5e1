"""Processes that are killed while they write: what they acknowledged is there, and all opens."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crag.web.cache import PageCache
from tests.repeating import times
from tests.torture.telling import tell

KILLS = times(2, 10, 50)
WRITER = """
import os, sys
from pathlib import Path
from crag.web.cache import PageCache
cache = PageCache(Path(sys.argv[1]))
parent, number = os.getppid(), int(sys.argv[2])
while os.getppid() == parent:
    cache.put(f"http://a/{number}", {"number": number, "text": "x" * 2000}, 24)
    print(number, flush=True)
    number += 1
"""


@pytest.mark.slow
def test_a_page_cache_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    place, draw, written = tmp_path / "pages.sqlite", random.Random(3), -1  # noqa: S311
    for _ in range(KILLS):
        command = [sys.executable, "-c", WRITER, str(place), str(written + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            written = int(process.stdout.readline())
            time.sleep(draw.random() / 5)
            process.kill()
            # A line that the kill cut off was not acknowledged.
            lines = [line for line in process.stdout if line.endswith("\n")]
        written = int(lines[-1]) if lines else written
        cache = PageCache(place)
        last = cache.get(f"http://a/{written}", 24)
        assert last is not None
        assert last["number"] == written
    tell(f"{KILLS} kills of a writer of the page cache: {written + 1} pages, none lost")
    assert written > KILLS
