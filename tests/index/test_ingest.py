"""`index_paths`: only the difference is written, and nothing is lost on the way."""

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag.errors import DocumentIndexError, EmbeddingMismatchError, SourceError
from crag.index import DocumentIndex, IndexReport, index_paths
from crag.index.backends import open_backend
from crag.index.update import replace_file

LONG = " ".join(f"This is sentence number {number} of the text." for number in range(60))


def numbers(report: IndexReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.unchanged, report.removed


def content(index: DocumentIndex) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return all chunks by id, with text and metadata."""
    with closing(open_backend(index.location)) as opened:
        return {str(one.id): (one.page_content, one.metadata) for one in opened.stored()}


def sources(index: DocumentIndex) -> set[str]:
    return {Path(metadata["source"]).name for _, metadata in content(index).values()}


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_a_second_run_changes_nothing(folder: Path, index: DocumentIndex, embeddings: Any) -> None:
    (folder / "a.md").write_text(f"# A\n\n{LONG}")
    (folder / "b.txt").write_text("Short.")
    first = index_paths([folder], index)
    before, asked = content(index), len(embeddings.embedded)
    assert numbers(first) == (2, 0, 0, 0)
    assert first.chunks == asked == len(before) == 4
    second = index_paths([folder, folder / "a.md"], index)
    assert numbers(second) == (0, 0, 2, 0)
    assert (second.chunks, len(embeddings.embedded)) == (0, asked)
    assert content(index) == before


def test_records_are_followed_one_by_one(
    folder: Path, index: DocumentIndex, embeddings: Any
) -> None:
    records = [{"id": f"r{number}", "text": f"Text {number}."} for number in range(50)]
    path = write_records(folder / "a.jsonl", records)
    index_paths([path], index)
    records[20]["text"] = "Changed."
    del records[10]
    write_records(path, records)
    report = index_paths([path], index)
    assert numbers(report) == (0, 39, 10, 1), "with those that moved"
    assert len(embeddings.embedded) == 51, "which are not embedded again"
    placed = {text: metadata["position"] for text, metadata in content(index).values()}
    assert placed["Text 9."] == "record 10"
    assert placed["Changed."] == "record 20"
    assert placed["Text 49."] == "record 49", "a record that moved is cited where it is now"
    assert "Text 10." not in placed


def test_what_is_unreadable_keeps_what_was_indexed(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.txt").write_text("Once readable.")
    write_records(folder / "b.jsonl", [{"id": "x", "text": "one"}, {"id": "y", "text": "two"}])
    index_paths([folder], index)
    before = content(index)
    (folder / "a.txt").write_bytes(b"\0\0")
    (folder / "b.jsonl").write_text('{"id": "x", "text": "one"}\n{"id": "y", "te')
    report = index_paths([folder], index)
    assert numbers(report) == (0, 0, 1, 0)
    assert content(index) == before
    assert [(Path(source).name, reason) for source, reason in report.skipped] == [
        ("a.txt", "its content looks binary, not like a text"),
        ("b.jsonl#2", "record 2: not JSON in UTF-8"),
    ]


def test_a_text_in_several_places_is_stored_once_and_found_in_each(
    folder: Path, index: DocumentIndex, embeddings: Any
) -> None:
    for name in ("archive", "current", "other"):
        (folder / name).mkdir()
        (folder / name / "leave.md").write_text("# Leave\n\nIt lasts twelve weeks.")
    (folder / "current" / "lunch.md").write_text("# Lunch\n\nAt noon.")
    assert numbers(index_paths([folder], index)) == (4, 0, 0, 0)
    assert len(embeddings.embedded) == 2
    (found,) = index.search("How long is leave?", 1, by="words")
    first, *others = (str(folder / name / "leave.md") for name in ("archive", "current", "other"))
    assert found.metadata["source"] == first
    assert found.metadata["also"] == [{"source": one, "position": "line 1"} for one in others]
    for way in ("both", "meaning", "words"):
        where = str(folder / "current")
        found = index.search("How long is leave?", 1, by=way, folder=where)[0]
        assert found.metadata["source"] == others[0], way
        assert {one["source"] for one in found.metadata["also"]} == {first, others[1]}
    Path(first).unlink()
    assert numbers(index_paths([folder], index)) == (0, 0, 3, 1)
    (found,) = index.search("How long is leave?", 1, by="words")
    assert (found.metadata["source"], len(found.metadata["also"])) == (others[0], 1)
    assert numbers(index_paths([folder / "other"], index, remove=True)) == (0, 0, 0, 1)
    assert "also" not in index.search("How long is leave?", 1, by="words")[0].metadata
    (folder / "current" / "leave.md").write_text("# Leave\n\nIt lasts a year.")
    index_paths([folder / "current"], index)
    assert not [one for one in index.search("weeks", 9, by="words") if "weeks" in one.page_content]
    assert len(embeddings.embedded) == 3


def test_a_link_to_nothing_goes(folder: Path, index: DocumentIndex) -> None:
    for name in ("stays.txt", "z.txt"):
        (folder / name).write_text(name)
    (folder / "link.txt").symlink_to(folder / "z.txt")
    index_paths([folder], index)
    (folder / "z.txt").unlink()
    assert numbers(index_paths([folder], index)) == (0, 0, 1, 2)
    assert sources(index) == {"stays.txt"}


def test_a_folder_within_an_indexed_one_is_followed_too(folder: Path, index: DocumentIndex) -> None:
    (folder / "sub").mkdir()
    for name in ("top.txt", "sub/a.txt", "sub/b.txt"):
        (folder / name).write_text(name)
    write_records(folder / "sub/r.jsonl", [{"id": "x", "text": "x"}, {"id": "y", "text": "y"}])
    index_paths([folder], index)
    (folder / "sub/a.txt").unlink()
    (folder / "top.txt").unlink()
    write_records(folder / "sub/r.jsonl", [{"id": "x", "text": "x"}])
    assert numbers(index_paths([folder / "sub"], index)) == (0, 0, 2, 2)
    assert sources(index) == {"top.txt", "b.txt", "r.jsonl#x"}


def test_nothing_to_index_creates_nothing(folder: Path, index: DocumentIndex) -> None:
    with pytest.raises(DocumentIndexError, match="nothing to index"):
        index_paths([folder], index)
    (folder / "a.xyz").write_text("x")
    report = index_paths([folder / "a.xyz"], index)
    assert numbers(report) == (0, 0, 0, 0)
    assert "unsupported" in report.skipped[0].reason
    assert not Path(index.location).exists()


def test_progress_runs_from_none_to_all(folder: Path, index: DocumentIndex) -> None:
    write_records(folder / "a.jsonl", [{"text": f"Text {number}."} for number in range(3)])
    (folder / "b.txt").write_text("x")
    calls: list[tuple[int, int, str]] = []
    index_paths([folder], index, progress=lambda *told: calls.append(told))
    assert [call[:2] for call in calls] == [(0, 2), (0, 2), (0, 2), (1, 2), (2, 2)]
    assert calls[0][2].endswith("a.jsonl#1")


def test_vectors_of_another_length_are_refused(
    folder: Path, index: DocumentIndex, make_embeddings: Callable[..., Any]
) -> None:
    (folder / "a.txt").write_text("x")
    index_paths([folder], index)
    (folder / "a.txt").write_text("y")
    other = DocumentIndex(index.location, make_embeddings(size=9))
    index.close()
    with pytest.raises(EmbeddingMismatchError, match=r"fake of 8 dimensions.*fake of 9"):
        index_paths([folder], other)


def stage(folder: Path, name: str, text: str) -> Path:
    """Write a file that is to take the place of another one of its name."""
    staging = folder.parent / "staging"
    staging.mkdir(exist_ok=True)
    (staging / name).write_text(text)
    return staging / name


def test_a_file_is_replaced_with_what_the_index_has_of_it(
    folder: Path, index: DocumentIndex
) -> None:
    file = write_records(folder / "notes.jsonl", [{"text": "An old kettle."}])
    index_paths([folder], index)
    staged = stage(folder, file.name, '{"text": "A kettle boils."}\n{"text": "It boils."}')
    report = replace_file(staged, file, index)
    assert numbers(report) == (1, 1, 0, 0)
    assert {text for text, _ in content(index).values()} == {"A kettle boils.", "It boils."}
    assert file.read_text().startswith('{"text": "A kettle boils')


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "\0", "a.txt: its content looks binary"),
        ("a.txt", " ", "a.txt: empty"),
        ("a.jsonl", '{"text": "A kettle."}\n{"te', "a.jsonl: record 2: not JSON"),
    ],
)
def test_what_cannot_be_read_replaces_nothing(
    folder: Path, index: DocumentIndex, name: str, text: str, told: str
) -> None:
    with pytest.raises(SourceError, match=told):
        replace_file(stage(folder, name, text), folder / name, index)
    assert not (folder / name).exists()


@pytest.mark.parametrize("before", ["An old kettle.", None])
def test_a_file_comes_back_where_the_index_cannot_be_written(
    folder: Path, index: DocumentIndex, make_embeddings: Callable[..., Any], before: str | None
) -> None:
    file = folder / "a.txt"
    (folder / "b.txt").write_text("A kettle boils.")
    if before:
        file.write_text(before)
    index_paths([folder], index)
    known = content(index)
    longer = DocumentIndex(index.location, make_embeddings(size=9))
    with pytest.raises(EmbeddingMismatchError):
        replace_file(stage(folder, file.name, "A new kettle boils."), file, longer)
    assert (file.read_text() if file.exists() else None) == before
    assert content(index) == known
