from pathlib import Path

import pytest

from crag.errors import DataError
from crag.papers.bench.examples import Refused
from crag.papers.loading.read_log import ReadLog, finish


def test_repairs_are_counted_and_the_first_places_named() -> None:
    reading = ReadLog(Path("data.json"), unit="item")
    for number in range(1, 8):
        reading.repair("mended", number)
    reading.repair("whole file")
    assert reading.notes == [
        "data.json: mended: 7 (item 1, 2, 3, 4, 5 …)",
        "data.json: whole file",
    ]


def test_refusals_keep_place_reason_and_id() -> None:
    reading = ReadLog(Path("folder/data.jsonl"))
    reading.refuse(3, "broken", "q3")
    assert reading.refused == [Refused("data.jsonl, line 3", "broken", "q3")]


def test_a_file_without_a_usable_row_tells_the_first_reasons() -> None:
    reading = ReadLog(Path("data.jsonl"))
    for number in range(1, 6):
        reading.refuse(number, f"reason {number}")
    with pytest.raises(DataError, match=r"line 1: reason 1; .*line 3: reason 3$"):
        finish(reading, [])
    with pytest.raises(DataError, match="it is empty"):
        finish(ReadLog(Path("data.jsonl")), [])
