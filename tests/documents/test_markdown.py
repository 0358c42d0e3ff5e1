"""Markdown and reStructuredText are read as their readers see them, and know their lines."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crag.documents.markdown import read_markdown
from crag.documents.restructured import read_rst
from crag.text.blocks import lines_of_all, text_of
from tests.documents.reading import cases, only

SHOWN = dict(cases(Path(__file__).with_name("markdown.txt")))


@pytest.mark.parametrize(("written", "shown"), SHOWN.values(), ids=SHOWN)
def test_markdown_is_read_as_it_is_seen(written: str, shown: str) -> None:
    assert text_of(read_markdown(written).blocks) == shown


YAML = """---
title: "On <em>mills</em>"
author: Ada
last_updated: 2024-05-01
layout: post
draft: false
note: >
  For
  June
reviewers:
  - Ben
  - Cleo
nested:
  a: b
---
"""


def test_front_matter_says_title_and_fields() -> None:
    read = read_markdown(f"{YAML}\nText.\n")
    assert read.title == "On <em>mills</em>"
    assert read.fields == {
        "author": "Ada", "last updated": "2024-05-01", "reviewers": "Ben, Cleo", "note": "For June",
    }  # fmt: skip
    assert read.fields_at == (1, YAML.count("\n"))
    assert [(block.text, block.first) for block in read.blocks] == [("Text.", YAML.count("\n") + 2)]


def test_front_matter_that_is_no_yaml_loses_nothing() -> None:
    matter = "title: Mills: a guide\nauthor: @ada\neditor: 'Ben'\nowner: {{ team }}"
    read = read_markdown(f"---\n{matter}\n---\nText.\n")
    assert (read.title, read.fields) == ("Mills: a guide", {"author": "@ada", "editor": "Ben"})


def test_each_line_knows_its_place() -> None:
    text = (
        "# Mills\n\nThey grind\nall day.\n\n- wheel\n- dam:\n\n  ```sh\n  run\n\n  stop\n  ```\n\n"
        "| a | b |\n|---|---|\n| c | d |\n\n!!! note\n    It floods\n    at times.\n\n"
        "```{tip}\n:class: x\n\nMind.\n```\n\n<table>\n<tr><th>e</th></tr>\n<tr>\n<td>f</td></tr>\n"
        "</table>\n\n    code\n"
    )
    lines = lines_of_all(read_markdown(text).blocks)
    assert [(line.text, line.first, line.last) for line in lines if line.text] == [
        ("# Mills", 1, 1), ("They grind all day.", 3, 4), ("- wheel", 6, 6), ("- dam:", 7, 7),
        ("  ```sh", 10, 10), ("  run", 10, 10), ("  stop", 12, 12), ("  ```", 12, 12),
        ("| a | b |", 15, 15), ("| --- | --- |", 15, 15), ("| c | d |", 17, 17),
        ("Note: It floods at times.", 19, 21), ("Tip: Mind.", 23, 26),
        ("| e |", 29, 33), ("| --- |", 29, 29), ("| f |", 29, 33),
        ("```", 35, 35), ("code", 35, 35), ("```", 35, 35),
    ]  # fmt: skip


@settings(deadline=None)  # The first example imports the parsers.
@given(st.lists(st.sampled_from("ab.:*=-|+`_ \n\t#>[]{}<%!\\") | st.just("\n\n")).map("".join))
def test_any_text_is_read_and_read_again_the_same(text: str) -> None:
    once = text_of(read_markdown(text).blocks)
    assert "\x02" not in once
    assert sorted(once) or not "".join(filter(str.isalnum, text)) or "<" in text or "[" in text


SHOWN_RST = dict(cases(Path(__file__).with_name("restructured.txt")))
ROWS = "| name | what |\n| --- | --- |\n| mill | the flour |\n| mill | of town |"
TABLES = {
    "grid": "+------+-----------+\n| name | what      |\n+======+===========+\n"
    "| mill | the flour |\n|      +-----------+\n|      | of town   |\n+------+-----------+\n",
    "simple": "====  =========\nname  what\n====  =========\nmill  the flour\nmill  of town\n"
    "====  =========\n",
    "list": ".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what\n   * - mill\n"
    "     - the flour\n   * - mill\n     - of town\n",
    "csv": '.. csv-table::\n   :header: "name", "what"\n\n   "mill", "the flour"\n'
    '   "mill", "of town"\n',
}


@pytest.mark.parametrize(("written", "shown"), SHOWN_RST.values(), ids=SHOWN_RST)
def test_restructured_text_is_read_as_it_is_seen(written: str, shown: str) -> None:
    assert text_of(read_rst(written)) == shown


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("title", ["", "Mills"])
def test_tables_of_all_kinds(table: str, title: str) -> None:
    lines = table.rstrip("\n").split("\n")
    if title and not table.startswith(".."):
        lines = [".. table::", "", *(f"   {line}" for line in lines)]
    if title:
        lines[0] += f" {title}"
    (*above, made) = read_rst("Text.\n\n" + "\n".join(lines))
    assert text_of([made]) == ROWS
    assert [block.text for block in above[1:]] == ([f"{title}:"] if title else [])
    for row in made.rows[1:]:
        named = "\n".join(["", "", *lines][row.first - 1 : row.last])
        assert row.cells[1] in named


def test_fields_of_a_file() -> None:
    text = "Mills\n=====\n\n:Author: Ada\n:Version: 3.2\n:orphan:\n\nText.\n"
    assert text_of(read_rst(text)) == "# Mills\n\n- **Author**: Ada\n- **Version**: 3.2\n\nText."


def test_each_line_of_restructured_text_knows_its_place() -> None:
    text = (
        ".. _m:\n\n=====\nMills\n=====\n\nThey grind\nall day.\n\nRun::\n\n  a\n\n  b\n\n- wheel\n"
        "- dam\n  of wood\n\n.. note:: It floods\n   at times.\n\n   Often.\n\n"
        ".. code-block:: sh\n   :caption: c\n\n   c\n   d\n\n+---+\n| e |\n+===+\n| f |\n+---+\n\n"
        ".. deprecated:: 3.2\n   Use it.\n\nEnd\n---\n"
    )
    lines = lines_of_all(read_rst(text))
    assert [(line.text, line.first, line.last) for line in lines if line.text] == [
        ("# Mills", 4, 5), ("They grind all day.", 7, 8), ("Run:", 10, 10),
        ("```", 12, 12), ("a", 12, 12), ("b", 14, 14), ("```", 14, 14),
        ("- wheel", 16, 16), ("- dam of wood", 17, 18), ("Note: It floods at times.", 20, 21),
        ("Often.", 23, 23), ("```sh", 28, 28), ("c", 28, 28), ("d", 29, 29), ("```", 29, 29),
        ("| e |", 32, 32), ("| --- |", 32, 32), ("| f |", 34, 34),
        ("Deprecated since version 3.2: Use it.", 37, 38), ("## End", 40, 41),
    ]  # fmt: skip


@settings(deadline=None)  # The first example imports the parsers.
@given(st.text(alphabet="ab.:*=-|+`_ \n\t", max_size=120))
@example("=\n=\n=\n")
@example(".. a::\n\n  .. b::\n")
def test_any_text_has_blocks(text: str) -> None:
    for line in lines_of_all(read_rst(text)):
        assert 1 <= line.first <= line.last <= text.count("\n") + 1


def test_a_text_that_breaks_its_parser_is_taken_as_plain(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text("- " * 4_000 + "The mill.")
    assert only(tmp_path / "a.rst").text.endswith("The mill.")
