"""Chunks: nothing lost, headings with their text, places that can be cited."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.documents.blocks import Markup, blocks_of, section_paths
from crag.documents.sources import SourceText, Unit
from crag.documents.splitting import CHUNK_SIZE, split, text_to_embed
from crag.models.minilm import packaged_model
from crag.text.encodings import storable

PIECES = ["word ", "A sentence. ", "\n", "\n\n", "\n# Title\n", "\n## Sub\n\n", "句子。", "x" * 300]


def words(text: str) -> str:
    return "".join(text.split())


def document(text: str, **fields: Any) -> SourceText:
    return SourceText(**{"source": "/a", "title": "T", "unit": "line", "text": text} | fields)


@settings(deadline=None)  # The first example imports the parsers.
@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=50)).map("".join),
    st.sampled_from(["", "markdown", "rst", "code"]),
)
def test_splitting_loses_no_text(text: str, markup: Markup) -> None:
    text = storable(text)
    chunks = split(document(text, markup=markup), "/")
    starts = [*(chunk.metadata["start"] for chunk in chunks), len(text)]
    assert starts == sorted(starts)
    for chunk, (start, end) in zip(chunks, pairwise(starts), strict=True):
        assert words(chunk.page_content).endswith(words(text[start:end]))
    assert words(text[: starts[0]]) == ""
    assert [chunk.metadata["chunk"] for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.metadata["chunks"] == len(chunks) for chunk in chunks)


@given(st.lists(st.sampled_from(["word ", "One sentence. ", "\n\n"]), max_size=900).map("".join))
def test_chunks_keep_to_their_size(text: str) -> None:
    assert all(len(chunk.page_content) <= CHUNK_SIZE for chunk in split(document(text), "/"))


def test_a_chunk_fits_the_encoder() -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_model() / "tokenizer.json"))
    tokenizer.no_truncation()
    english = Path(__file__).parents[2].joinpath("LICENSE").read_text()
    for text in (english, "这是一个关于检索的说明。" * 200, "def f(x): return {x[0]: -x}\n" * 100):
        for chunk in split(document(text), "/"):
            assert len(tokenizer.encode(text_to_embed(chunk)).ids) <= 256


def test_a_heading_stays_with_the_text_below_it() -> None:
    text = "# T\n\n" + "Some text. " * 80 + "\n\n## Use\n\n### Install\n\n" + "More text. " * 120
    first, second, *_ = split(document(text, markup="markdown"), "/")
    assert first.page_content.endswith("Some text.")
    assert second.page_content.startswith("## Use\n\n### Install\n\nMore text.")
    assert second.metadata["section"] == "Use > Install"


def test_metadata_of_a_chunk() -> None:
    text = "Intro.\n\n## Use\n\n" + " ".join(f"Sentence {n}." for n in range(120))
    _, *_, chunk = split(document(text, markup="markdown", url="https://example.org"), "/root")
    repeated = text.index(chunk.page_content)
    assert chunk.metadata | {"content_hash": ""} == {
        "source": "/a",
        "title": "T",
        "url": "https://example.org",
        "position": "line 5",
        "lines": "5",
        "kind": "prose",
        "section": "Use",
        "start": text.index(". ", repeated) + 2,
        "content_hash": "",
        "chunk": 3,
        "chunks": 4,
        "root": "/root",
    }
    assert chunk.id is not None


@pytest.mark.parametrize(
    ("unit", "fields", "expected"),
    [
        ("line", {}, ["line 1", "line 3"]),
        ("paragraph", {}, ["paragraph 1", "paragraph 2"]),
        ("page", {"pages": [0, 902]}, ["page 1", "page 2"]),
        ("row", {"number": 12}, ["row 12", "row 12"]),
        ("record", {"number": 12}, ["record 12", "record 12"]),
    ],
)
def test_positions(unit: Unit, fields: dict[str, Any], expected: list[str]) -> None:
    text = "a" * 900 + "\n\n" + "b" * 900
    chunks = split(document(text, unit=unit, **fields), "/")
    assert [chunk.metadata["position"] for chunk in chunks] == expected


def test_ids_name_the_version_of_the_document() -> None:
    ids = {
        split(document(text, source=source, title=title), "/")[0].id
        for text, source, title in [
            ("a", "/a", "T"), ("b", "/a", "T"), ("a", "/b", "T"), ("a", "/a", "U"),
        ]
    }  # fmt: skip
    assert len(ids) == 4
    assert split(document("a"), "/")[0].id == split(document("a"), "/other")[0].id


def test_sections_are_paths() -> None:
    text = "# T\n# Other\n## Use\n#### Deep ##\nNext\n----\n~~~\n# code\n~~~\n"
    found = [block for block in blocks_of(text, "markdown") if block.level]
    assert section_paths(found, "T") == [
        (), ("Other",), ("Other", "Use"), ("Other", "Use", "Deep"), ("Other", "Next"),
    ]  # fmt: skip
    assert [text[block.start : block.end] for block in found][-2:] == ["#### Deep ##", "Next\n----"]


def test_the_title_is_embedded_with_the_text() -> None:
    assert text_to_embed(Document("Text.", metadata={"title": "T"})) == "T // Text."
    assert text_to_embed(Document("Text.", metadata={"title": ""})) == "Text."


def test_what_a_long_directive_holds_is_cut_between_its_paragraphs() -> None:
    said = (
        "The call {} ends what runs. It says\n    nothing of what it has ended, and waits for none."
    )
    body = "\n\n".join(
        f"  .. method:: call{number}\n\n    {said.format(number)}" for number in range(20)
    )
    chunks = split(document(f".. class:: Server\n\n{body}\n", markup="rst"), "/")
    assert len(chunks) > 1
    assert all(chunk.page_content.rstrip().endswith("waits for none.") for chunk in chunks)
