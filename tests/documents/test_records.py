"""JSONL and CSV: one document per record."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from crag.documents.loaders import load
from crag.documents.sources import SourceText, Unusable
from crag.index import DocumentIndex, index_paths


def texts(path: Path) -> list[SourceText]:
    return [loaded for loaded in load(path) if isinstance(loaded, SourceText)]


def refusals(path: Path) -> dict[str, str]:
    return {
        loaded.source.removeprefix(str(path)): loaded.reason
        for loaded in load(path)
        if isinstance(loaded, Unusable)
    }


def test_jsonl_fields(folder: Path) -> None:
    path = folder / "a.jsonl"
    records = [
        {"id": "x", "text": "One.", "title": "First", "url": "https://example.org/1"},
        {"id": 7, "content": "Two.", "title": None},
        {"page_content": "Three.", "other": [1]},
    ]
    path.write_text("\n\n".join(map(json.dumps, records)), encoding="utf-8-sig")
    one, two, three = texts(path)
    assert (one.source, one.title, one.url) == (f"{path}#x", "First", "https://example.org/1")
    assert (two.source, two.title, two.text, two.number) == (f"{path}#7", "", "Two.", 3)
    assert (three.source, three.number, three.unit) == (f"{path}#5", 5, "record")


def test_a_json_file_is_a_list_of_records(folder: Path) -> None:
    path = folder / "a.json"
    records = [{"id": "x", "text": "One.", "title": "First"}, {"content": "Two."}, {"id": ""}, 3]
    path.write_text(json.dumps(records, indent=1))
    one, two = texts(path)
    assert (one.source, one.title, one.unit) == (f"{path}#x", "First", "record")
    assert (two.source, two.text, two.number) == (f"{path}#2", "Two.", 2)
    assert refusals(path) == {"#3": "record 3: empty", "#4": "record 4: not a JSON object"}
    path.write_text('{"of": "May", "mills": [{"kind": "water"}, {"kind": "wind"}]}')
    assert [one.text for one in texts(path)] == ["of: May", "kind: water", "kind: wind"]
    path.write_text('{"mills": {"Wick": {"kind": "water"}, "Holm": {"kind": "wind"}}}')
    assert [one.text[:11] for one in texts(path)] == ["mills: Wick", "mills: Holm"]


@pytest.mark.parametrize("body", ['[{"text": "cut o', "[" * 100_000, "7"])
def test_a_json_file_that_is_no_list_keeps_what_was_indexed(
    folder: Path, index: DocumentIndex, body: str
) -> None:
    (folder / "a.json").write_text('[{"text": "One."}]')
    index_paths([folder], index)
    (folder / "a.json").write_text(body)
    report = index_paths([folder], index)
    (skipped,) = report.skipped
    assert (report.removed, skipped.empty) == (0, False)
    assert ("no list of objects" if body == "7" else "not what it seems") in skipped.reason


def test_bad_lines_are_told_and_the_rest_is_kept(folder: Path) -> None:
    path = folder / "a.jsonl"
    bad = [b"{not json", b"[1]", b'{"id": "y"}', b'{"text": null}', b'{"text": " "}', b"\xff\xff"]
    deep = b"[" * 100_000
    path.write_bytes(b"\n".join([b'{"text": "good"}', *bad, deep, b'{"text": "also"}']))
    assert [document.text for document in texts(path)] == ["good", "also"]
    assert refusals(path) == {
        "#2": "record 2: not JSON in UTF-8", "#3": "record 3: not a JSON object",
        "#y": "record 4: empty", "#5": "record 5: empty", "#6": "record 6: empty",
        "#7": "record 7: not JSON in UTF-8", "#8": "record 8: not JSON in UTF-8",
    }  # fmt: skip


def test_an_id_that_looks_like_the_name_of_another_record_stays_one_of_its_own(
    folder: Path,
) -> None:
    path = folder / "a.csv"
    ids = ["3", "", "a@6", "a", "a", "x#y", "x%23y"]
    path.write_text("id,text\n" + "".join(f"{one},text {one}\n" for one in ids))
    sources = [loaded.source for loaded in load(path)]
    assert len(set(sources)) == len(ids)
    assert sources[:2] == [f"{path}#3", f"{path}#3@3"]


def test_other_fields_of_a_record_are_lines_below_its_text(folder: Path) -> None:
    path = folder / "a.jsonl"
    records = [
        {"id": 1, "text": "One.", "tags": ["a", "b"], "size": {"kg": 2.5}, "old": None, "ok": True},
        {"id": 2, "name": "Kiosk", "phone": 4410, "title": "On kiosks", "url": "https://e.org/k"},
        {"content": "Two.", "text": "First.\n\nThen\nmore."},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    one, two, three = texts(path)
    assert one.text == "One.\n\ntags: a, b  \nsize: kg: 2.5  \nok: true"
    assert (two.source, two.title, two.url) == (f"{path}#2", "On kiosks", "https://e.org/k")
    assert two.text == "name: Kiosk  \nphone: 4410"
    assert three.text == "First.\n\nThen  \nmore.\n\ncontent: Two."


CELLS = ["Kiosk", "4410", "4411", "open, in May"]
FAULTS: dict[str, tuple[list[list[str]], str]] = {
    "a table below": ([["name", "kg", "l", "note"], ["Mill", "1", "2", "wet"], [],
                       ["place", "phone", "fax", "note"], CELLS],
                      "place: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "columns of one name": ([["name", "phone", "phone", "note"], CELLS],
                            "name: Kiosk; phone: 4410; 4411; note: open, in May"),
    "a column without a name": ([["name", "phone", "", "note"], CELLS],
                                "name: Kiosk; phone: 4410; 4411; note: open, in May"),
    "surplus cells": ([["name", "phone"], CELLS, ["Mill", "1"]],
                      "name: Kiosk; phone: 4410; 4411; open, in May"),
    "a title": ([["Phones of March"], ["name", "phone", "fax", "note"], CELLS],
                "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "a title with empty cells": ([["Phones of March", "", "", ""], [],
                                  ["name", "phone", "fax", "note"], CELLS],
                                 "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "comments": ([["# written by hand"], ["# in March"], ["name", "phone", "fax", "note"], CELLS],
                 "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "a header that is a comment": ([["#name", "phone", "fax", "note"], CELLS],
                                   "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "no header": ([CELLS, ["Mill", "4420", "4421", "closed"]], "Kiosk; 4410; 4411; open, in May"),
    "years": ([["name", "2023", "2024", "note"], CELLS],
              "name: Kiosk; 2023: 4410; 2024: 4411; note: open, in May"),
    "a column called content": ([["name", "phone", "fax", "Content"], CELLS],
                                "open, in May; name: Kiosk; phone: 4410; fax: 4411"),
    "a label of several rows": ([["name", "phone", "fax", "note"], ["Kiosk", "1", "2", "dry"],
                                 ["", *CELLS[1:]]],
                                "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
    "empty cells": ([["name", "phone", "fax", "note"], ["Hut", "", "", ""], CELLS],
                    "name: Kiosk; phone: 4410; fax: 4411; note: open, in May"),
}  # fmt: skip
"""Rows, and what the row of the kiosk says, its lines joined with semicolons."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("written", ["csv", "tsv", "semicolon", "bar", "sep"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_cell_of_a_csv_file_is_read(
    fault: str, written: str, encoding: str, folder: Path
) -> None:
    rows, text = FAULTS[fault]
    delimiter = {"csv": ",", "tsv": "\t", "bar": "|"}.get(written, ";")
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    path = folder / ("a.tsv" if written == "tsv" else "a.csv")
    head = "sep=;\n" if written == "sep" else ""
    path.write_bytes((head + out.getvalue()).encode(encoding))
    found = texts(path)
    assert text in [re.sub(r"\s*\n+", "; ", one.text) for one in found]
    cells = [cell.strip("# ") for row in rows for cell in row]
    whole = "\n".join(one.text for one in found).replace("\\", "")
    assert [cell for cell in cells if cell not in whole and cell != "Content"] == []
    assert refusals(path) == {}


def test_a_csv_file_that_is_none(folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text('text\n"' + "x" * 4_000_001)
    assert refusals(path) == {"": "not a CSV file: field larger than field limit (4000000)"}
    path.write_bytes(b"a,b\n1\0,2\n")
    assert refusals(path) == {"": "its content looks binary, not like a text"}


def test_csv_with_a_text_column_and_a_long_cell(folder: Path) -> None:
    path = folder / "a.csv"
    long = "x" * 200_000
    path.write_text(f'ID,Title,Text,By\n7,Engines,"Two\nlines, quoted",Ada\n8,Empty,,\n,,{long},\n')
    first, untold, last = texts(path)
    assert (first.source, first.title) == (f"{path}#7", "Engines")
    assert first.text == "Two  \nlines, quoted\n\nBy: Ada"
    assert (untold.source, untold.text) == (f"{path}#3", "ID: 8  \nTitle: Empty")
    assert (last.source, last.number, last.unit, last.text) == (f"{path}#4", 4, "row", long)
    path.with_suffix(".tsv").write_text('name\tsize\n"Pipe\t5\nRope\t6\n')
    assert [one.number for one in texts(path.with_suffix(".tsv"))] == [2, 3]
