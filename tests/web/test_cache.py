"""The cache of pages: what it keeps, for how long, and that it fails no run."""

import json
import logging
import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from subprocess import PIPE

import pytest

from crag.web.cache import PageCache

VALUE = {"title": "Ada", "paragraphs": ["one", "zwei ü"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "pages.sqlite"


def aged(path: Path, hours: float) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE pages SET stored = stored - ?", (hours * 3600,))


def keys(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM pages ORDER BY key")]


def test_what_was_put_is_there_for_others(path: Path) -> None:
    PageCache(path).put("a", VALUE, 1)
    assert PageCache(path).get("a", 1) == VALUE
    assert PageCache(path).get("b", 1) is None


def test_a_second_value_replaces_the_first(path: Path) -> None:
    cache = PageCache(path)
    cache.put("a", VALUE, 1)
    cache.put("a", {"title": ""}, 1)
    assert cache.get("a", 1) == {"title": ""}


def test_the_reader_says_how_old_is_too_old(path: Path) -> None:
    cache = PageCache(path)
    cache.put("a", VALUE, 1)
    aged(path, 2)
    assert cache.get("a", 1) is None
    assert cache.get("a", 3) == VALUE


def test_writing_deletes_old_rows_now_and_then(path: Path) -> None:
    PageCache(path).put("old", VALUE, 1)
    aged(path, 24 * 365)
    cache = PageCache(path)
    cache.put("new", VALUE, 1)
    assert keys(path) == ["new"]
    aged(path, 24 * 365)
    cache.put("newer", VALUE, 1)
    assert keys(path) == ["new", "newer"]


def test_zero_hours_touch_nothing(path: Path) -> None:
    cache = PageCache(path)
    cache.put("a", VALUE, 0)
    assert cache.get("a", 0) is None
    assert not path.parent.exists()


def test_reading_creates_nothing(path: Path) -> None:
    assert PageCache(path).get("a", 1) is None
    assert not path.exists()


def test_only_the_user_can_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        PageCache(path).put("a", VALUE, 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "not JSON", "[]", '"text"', "{"])
def test_a_damaged_row_is_no_row(path: Path, text: str) -> None:
    cache = PageCache(path)
    cache.put("a", VALUE, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE pages SET value = ?", (text,))
    assert cache.get("a", 1) is None


def fails_softly(cache: PageCache, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    cache.put("a", VALUE, 1)
    assert cache.get("a", 1) is None
    assert "is not used" in caplog.text


def test_a_damaged_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(b"This is no database. " * 500)
    fails_softly(PageCache(path), caplog)


def test_a_table_of_another_kind(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE pages (other)")
    fails_softly(PageCache(path), caplog)


def test_a_folder_in_the_place_of_the_file(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.mkdir(parents=True)
    fails_softly(PageCache(path), caplog)


def test_a_file_in_the_place_of_the_folder(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.write_text("")
    caplog.set_level(logging.WARNING)
    PageCache(path).put("a", VALUE, 1)
    assert "is not used" in caplog.text
    assert PageCache(path).get("a", 1) is None


def fill(path: Path, writer: int) -> int:
    cache = PageCache(path)
    for row in range(20):
        cache.put(f"{writer} {row}", VALUE | {"row": row}, 1)
    return sum(cache.get(f"{writer} {row}", 1) is not None for row in range(20))


def test_threads_at_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(fill, [path] * 6, range(6))) == [20] * 6
    assert caplog.text == ""


OTHER_PROCESS = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("REPLACE INTO pages VALUES ('theirs', '{}', 9e9)")
print("writing", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def test_another_process_that_writes_is_waited_for(path: Path) -> None:
    cache = PageCache(path)
    cache.put("ours", VALUE, 1)
    command = [sys.executable, "-c", OTHER_PROCESS, str(path)]
    with (
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        waiting = pool.submit(cache.put, "later", VALUE, 1)
        assert cache.get("ours", 1) == VALUE
        assert cache.get("theirs", 1) is None
        assert not waiting.done()
        other.communicate("go on\n")
        waiting.result()
    assert keys(path) == ["later", "ours", "theirs"]


def test_values_are_json(path: Path) -> None:
    PageCache(path).put("a", VALUE, 1)
    with closing(sqlite3.connect(path)) as connection:
        [(text,)] = connection.execute("SELECT value FROM pages")
    assert json.loads(text) == VALUE
