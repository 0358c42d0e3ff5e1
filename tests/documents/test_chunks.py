"""Chunks hold whole blocks, all, in order, with what a part needs; their lines know places."""

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.correction.provenance import source_of, source_within
from crag.documents.chunks import (
    CHUNK_SIZE,
    LONGEST_CONTEXT,
    Chunk,
    chunks_of,
    split,
    text_to_embed,
)
from crag.documents.loaders import find_files, load
from crag.documents.markdown import read_markdown
from crag.documents.sources import SourceText, of_blocks
from crag.text.blocks import Block, Item, Row, text_of
from crag.text.places import line_places, lines_written
from crag.text.sentences import split_sentences
from tests.conftest import CORPORA

HERE = Path(__file__).parents[2]
PROSE = "The mill grinds the flour of the village in every season of the year. "


def document(blocks: Sequence[Block], title: str = "T") -> SourceText:
    return of_blocks(Path("/a"), title, blocks, "line")


def of_markdown(text: str) -> list[Chunk]:
    return chunks_of(document(read_markdown(text).blocks))


def texts_of(text: str) -> list[str]:
    return ["\n".join(line.text for line in chunk.lines) for chunk in of_markdown(text)]


def own(chunk: Chunk) -> str:
    return "\n".join(line.text for line in chunk.lines[chunk.context_lines :])


words = st.lists(st.sampled_from(["mill.", "Grinds", "the flour", "in 1881.", "x" * 300, "句子。"]))
lines = words.map(" ".join).filter(bool)
texts = st.builds(lambda text: Block("text", 1, 1, text), lines)
codes = st.builds(
    lambda text: Block("code", 1, text.count("\n") + 1, text, info="py"),
    st.lists(lines | st.just("")).map("\n".join).filter(str.strip),
)
tables = st.builds(
    lambda rows: Block("table", 1, 1, rows=[Row(row, 1, 1) for row in rows]),
    st.lists(st.lists(lines, min_size=1, max_size=3), min_size=1, max_size=30),
)
headings = st.builds(
    lambda text, level: Block("heading", 1, 1, text[:40].strip(), level=level),
    lines,
    st.integers(1, 4),
)
inner = st.deferred(lambda: st.lists(texts | codes | lists, min_size=1, max_size=4))
lists = st.builds(
    lambda items, mark: Block("list", 1, 1, items=[Item(mark, held) for held in items]),
    st.lists(inner, min_size=1, max_size=6),
    st.sampled_from(["-", "1."]),
)


@given(st.lists(texts | codes | tables | lists | headings, max_size=20))
def test_all_that_is_seen_stands_once_in_order(blocks: list[Block]) -> None:
    chunks = chunks_of(document(blocks))
    held = letters("".join(map(own, chunks)).replace("```py", ""))
    assert held == letters(text_of(blocks).replace("```py", "")) or _has_wide_rows(blocks)
    for chunk in chunks:
        assert any(line.text.strip(" #`|-") for line in chunk.lines)
        assert chunk.context_lines < len(chunk.lines)


def _has_wide_rows(blocks: Sequence[Block]) -> bool:
    """Return whether there are rows that become lists, which repeat the names of columns."""
    return any(len("".join(row.cells)) > LONGEST_CONTEXT for block in blocks for row in block.rows)


@given(st.lists(st.sampled_from(["word ", "One sentence. ", "\n\n", "- item\n", "\n# H\n"])))
def test_chunks_keep_to_their_size(pieces: list[str]) -> None:
    assert all(len(text) <= CHUNK_SIZE for text in texts_of("".join(pieces * 30)))


LAYOUTS: dict[str, Callable[[int], str]] = {
    "bullets": lambda n: f"- **part {n}**: {PROSE}",
    "numbers": lambda n: f"{n + 1}. part {n}: {PROSE}",
    "items of paragraphs": lambda n: f"- part {n}\n\n  {PROSE}",
    "rows": lambda n: (
        f"| part {n} | {PROSE}|" if n else f"| no | what |\n|---|---|\n| 0 | {PROSE}|"
    ),
    "code": lambda n: f"part{n}()\nrun({PROSE!r})\n" if n else "```py\npart0()\n",
}


@pytest.mark.parametrize(("name", "layout"), LAYOUTS.items(), ids=LAYOUTS)
@pytest.mark.parametrize("lead", ["The parts are these:", "It has the following parts."])
def test_each_part_repeats_what_it_needs(
    name: str, layout: Callable[[int], str], lead: str
) -> None:
    body = "\n".join(map(layout, range(40))) + ("\n```" if name == "code" else "")
    chunks = of_markdown(f"# T\n\n{PROSE * 8}\n\n## Parts\n\n{lead}\n\n{body}\n\n## End\n\n{PROSE}")
    parts = [chunk for chunk in chunks if chunk.path == ("Parts",)]
    assert len(parts) > 2
    head = {"rows": "\n\n| no | what |\n| --- | --- |", "code": "\n\n```py"}.get(name, "\n")
    for chunk in parts[1:]:
        assert text_of_lines(chunk).startswith(f"{lead}{head}")
        assert chunk.lines[0].first == 7
        assert chunk.context_lines
    if name == "code":
        assert all(text_of_lines(chunk).count("```") == 2 for chunk in parts)
    assert not any(own(chunk).rstrip().endswith((":", "following parts.")) for chunk in chunks)


def text_of_lines(chunk: Chunk) -> str:
    return "\n".join(line.text for line in chunk.lines)


def test_each_part_of_a_long_item_repeats_its_first_line() -> None:
    pages = "".join(f"  Page {number}. {PROSE * 4}\n\n" for number in range(9))
    chunks = of_markdown(f"- port\n- server\n\n  - socket\n\n{pages.replace('  P', '    P')}- last")
    parts = [text_of_lines(chunk) for chunk in chunks if "Page" in text_of_lines(chunk)]
    assert len(parts) > 2
    assert all("- server\n  - socket\n" in part for part in parts)


def test_code_is_cut_before_what_stands_outermost_and_not_within_a_text() -> None:
    functions = (
        f'def f{n}():\n    """Do it.\n\n    {PROSE * 2}\n\n    So.\n    """\n\n    return {n}\n\n\n'
        for n in range(20)
    )
    _, *others = of_markdown(f"```py\n{''.join(functions)}```\n")
    assert others
    assert all(own(chunk).startswith("```py\ndef f") for chunk in others)


def test_short_sections_share_a_chunk_each_under_its_heading() -> None:
    page = "".join(f"## Tent {n}\n\nIt weighs {n} kg.\n\n" for n in range(4))
    (chunk,) = of_markdown(f"# T\n\n## Tents\n\nAll.\n\n{page}".replace("## Tent ", "### Tent "))
    assert (chunk.path, text_of_lines(chunk).count("### Tent ")) == (("Tents",), 4)


def test_a_heading_is_no_passage() -> None:
    assert texts_of("# T\n\n## A\n\n### B\n\nText.\n\n## C\n") == [
        "# T\n\n## A\n\n### B\n\nText.\n\n## C"
    ]
    long = of_markdown(f"# T\n\n{PROSE * 13}\n\n## A\n\n### B\n\n{PROSE * 13}\n")
    assert [chunk.path for chunk in long] == [(), ("A", "B")]
    assert text_of_lines(long[1]).startswith("## A\n\n### B\n\nThe mill")
    assert document(read_markdown("# T\n\n## A\n").blocks).says_nothing


def test_what_a_file_says_of_itself_is_a_passage_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: Mills\nauthor: Ada\nversion: 3.2\n---\n\nText.\n")
    (tmp_path / "a.html").write_text(
        "<title>Mills</title><meta name=author content=Ada><meta name=version content=3.2>Text."
    )
    for file in tmp_path.iterdir():
        (loaded,) = load(file)
        assert isinstance(loaded, SourceText)
        said, text = split(loaded, "/")
        assert said.page_content == "Author: Ada  \nVersion: 3.2"
        assert text_to_embed(said).startswith("Mills // Author: Ada")
        assert text.page_content.endswith("Text.")


def test_metadata_of_a_chunk() -> None:
    blocks = read_markdown(f"# T\n\nA\nb.\n\n## Use\n\n{PROSE * 20}\n").blocks
    source = of_blocks(Path("/a"), "", blocks, "line", url="https://example.org")
    first, _, last = split(source, "/root")
    assert first.metadata["lines"] == "1 1-0 3-4".replace("1-0", "3")
    assert last.metadata | {"content_hash": ""} == {
        "source": "/a", "title": "T", "url": "https://example.org", "position": "line 8",
        "lines": "8", "section": "Use", "content_hash": "",
        "chunk": 2, "root": "/root",
    }  # fmt: skip
    assert last.id is not None
    record = SourceText(source="/a#1", title="", blocks=blocks, unit="row", number=12)
    assert [chunk.metadata["position"] for chunk in split(record, "/")] == ["row 12"] * 3
    assert "lines" not in split(record, "/")[0].metadata


def test_the_title_and_all_headings_above_are_embedded_with_the_text() -> None:
    def embedded(text: str, **metadata: str) -> str:
        return text_to_embed(Document(text, metadata=metadata))

    assert embedded("Text.", title="T") == "T // Text."
    assert embedded("Text.", title="") == "Text."
    assert embedded("It **is**.", title="T", section="A > B") == "T // A > B // It is."
    assert embedded("## B\n\nIt is.", title="T", section="A > B") == "T // A // B It is."


@pytest.mark.data
@pytest.mark.parametrize("corpus", CORPORA)
def test_a_hundred_sentences_of_others_stand_on_the_lines_that_their_chunk_names(
    data: Path, corpus: str
) -> None:
    assert_sentences_stand_on_their_lines(data / "docs/corpus" / corpus)


def test_a_hundred_sentences_stand_on_the_lines_that_their_chunk_names() -> None:
    assert_sentences_stand_on_their_lines(HERE / "docs")


def assert_sentences_stand_on_their_lines(folder: Path) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    files = [file for file in find_files([folder]).files if file.suffix in {".md", ".rst"}]
    documents = [one for file in chance.sample(files, min(20, len(files))) for one in load(file)]
    chunks = [c for one in documents if isinstance(one, SourceText) for c in split(one, "/")]
    missed = 0
    for _ in range(100):
        chunk = chance.choice(chunks)
        text, start = chunk.page_content, 0
        places = [(start, start := start + len(piece)) for piece in split_sentences(text) if piece]
        begin, end = chance.choice([place for place in places if letters(text[slice(*place)])])
        places = line_places(chunk.metadata["lines"], text.count("\n") + 1)
        within = places[text.count("\n", 0, begin) : text.count("\n", 0, end) + 1]
        first, last = min(place[0] for place in within), max(place[1] for place in within)
        rows = Path(chunk.metadata["source"]).read_text(encoding="utf-8").split("\n")
        held = letters("".join(rows[first - 1 : last]))
        said = re.sub(r" \(http[^()]*\)", "", text[begin:end])
        said = re.sub(r"```\w*", "", said)
        said = re.sub(r"^\w+ (?:in|since) version ", "", said)  # Words of Sphinx for a directive.
        missed += not all(letters(word) in held for word in said.split())
    assert missed == 0


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def test_chunks_of_other_alphabets_are_as_long_as_those_of_english() -> None:
    russian = texts_of(
        "Срок расторжения договора составляет четыре недели после уведомления. " * 60
    )
    chinese = texts_of("合同解除的期限为四周。" * 200)
    assert 700 < max(map(len, russian)) <= CHUNK_SIZE
    assert 200 < max(map(len, chinese)) <= CHUNK_SIZE // 4


def test_what_leads_in_a_part_of_a_list_is_not_its_place(tmp_path: Path) -> None:
    items = "".join(f"- **-{n}**: {'The light turns. ' * 6}\n" for n in range(40))
    (tmp_path / "a.md").write_text(f"# Lights\n\nThe options are:\n\n{items}")
    (loaded,) = load(tmp_path / "a.md")
    assert isinstance(loaded, SourceText)
    for chunk in split(loaded, "/")[1:]:
        text = chunk.page_content
        assert text.startswith("The options are:")
        source = source_within(source_of(chunk, 0), text, 0, text.index("turns"))
        assert source["position"] == f"line {int(re.findall('- [*][*]-([0-9]+)', text)[0]) + 5}"


def test_places_of_others_may_be_any_number() -> None:
    assert lines_written([(3, 3), (3, 3), (4, 6), (7, 7)]) == "3*2 4-6 7"
    assert line_places(f"9*{10**30}", 2) == [(9, 9), (9, 9)]
