"""Markdown of all dialects is read as its readers see it, and knows its lines."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.documents.markdown import read_markdown
from crag.text.blocks import lines_of_all, text_of
from tests.documents.reading import cases

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
    assert dict(read.fields) == {
        "author": "Ada", "last updated": "2024-05-01", "reviewers": "Ben, Cleo",
    }  # fmt: skip
    assert read.place == (1, YAML.count("\n"))
    assert [(block.text, block.first) for block in read.blocks] == [("Text.", YAML.count("\n") + 2)]


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
