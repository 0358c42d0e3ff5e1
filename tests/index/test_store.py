"""An index: opening it, and writing only the difference, with nothing lost on the way."""

import json
import pickle
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crag.cli.index_workers import worker
from crag.documents.loaders import Found
from crag.errors import DocumentIndexError, IndexNotFoundError, SourceError
from crag.index import DocumentIndex, IndexReport, IndexRetriever, index_paths, open_index
from crag.index.backends.sqlite_file import FILE
from crag.index.update import FromFile, Held, replace_file
from crag.models.encoder import packaged_encoder
from crag.runtime.environment import Environment


@pytest.fixture
def filled(folder: Path, index: DocumentIndex) -> DocumentIndex:
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"Text {number}.")
    index_paths([folder], index)
    return index


def test_a_missing_index_is_told_and_not_created(index: DocumentIndex) -> None:
    assert not index.exists()
    for use in (index.open, lambda: IndexRetriever(index).invoke("?")):
        with pytest.raises(IndexNotFoundError) as told:
            use()
        assert str(told.value).endswith(f"crag index PATH… --index {index.location}")
    assert not Path(index.location).exists()


def test_an_empty_index(filled: DocumentIndex, folder: Path) -> None:
    index_paths([folder], filled, remove=True)
    assert filled.exists()
    with pytest.raises(IndexNotFoundError, match="is empty"):
        filled.open()


def test_another_embedding_model(
    filled: DocumentIndex, folder: Path, make_embeddings: Callable[..., Any]
) -> None:
    other = open_index(filled.location, make_embeddings("another"))
    with pytest.raises(DocumentIndexError, match="'fake', but 'another'"):
        other.open()
    with pytest.raises(DocumentIndexError, match="'fake', but 'another'"):
        index_paths([folder], other)


def write_garbage(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)


def truncate(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 3])


def write_other_database(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE crag_index (other TEXT)")
        database.commit()


@pytest.mark.parametrize(
    ("names", "text", "question"),
    [
        ([str(number) for number in range(1000, 1060)], "It stops with {}.", "Why {}?"),
        (
            [f"Quer{one}{other}o" for one in "bdfgklmnst" for other in "aeioux"],
            "Maschine {} bleibt stehen.",
            "Welche Ursache hat wohl {} hier gehabt?",
        ),
    ],
)
def test_words_count_as_much_where_meaning_cannot_tell(
    index: DocumentIndex, folder: Path, embeddings: Any, names: list[str], text: str, question: str
) -> None:
    embeddings.languages = {"en"}
    for name in names:
        (folder / f"{name}.txt").write_text(text.format(name))
    index_paths([folder], index)
    for name in names[::10]:
        first = index.search(question.format(name), 2)
        assert text.format(name) in [found.page_content for found in first]


@pytest.mark.parametrize("damage", [write_garbage, truncate, write_other_database])
def test_a_damaged_index_is_told(filled: DocumentIndex, damage: Callable[[Path], None]) -> None:
    filled.close()
    damage(Path(filled.location) / FILE)
    with pytest.raises(DocumentIndexError, match="delete the folder and index again"):
        filled.open().search("Text 3.")


def test_an_index_of_another_version_is_told(filled: DocumentIndex, folder: Path) -> None:
    filled.close()
    with closing(sqlite3.connect(Path(filled.location) / FILE)) as database:
        database.execute("UPDATE crag_index SET schema = schema - 1")
        database.commit()
    for use in (filled.open, lambda: index_paths([folder], filled)):
        with pytest.raises(DocumentIndexError, match="another version of crag"):
            use()


def test_a_file_is_no_index(tmp_path: Path, folder: Path, embeddings: Any) -> None:
    (folder / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    index = open_index(tmp_path / "file", embeddings)
    with pytest.raises(DocumentIndexError, match="cannot be written: File exists"):
        index_paths([folder], index)


LONG = " ".join(f"This is sentence number {number} of the text." for number in range(60))


def numbers(report: IndexReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.unchanged, report.removed


def content(index: DocumentIndex) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return all chunks by id, with text and metadata."""
    return {str(one.id): (one.page_content, one.metadata) for one in index.stored()}


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
    assert [(Path(one.source).name, one.reason) for one in report.skipped] == [
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
    (folder / "self.txt").symlink_to(folder / "self.txt")
    for name, problem in ("a.xyz", "unsupported"), ("self.txt", "no such file"), ("~nobody", "no"):
        with pytest.raises(DocumentIndexError, match=problem):
            index_paths([folder / name], index)
    with pytest.raises(DocumentIndexError, match="of nothing: name a file or a folder to index"):
        index_paths([], index)
    assert not Path(index.location).exists()
    (folder / "b.json").write_text("7")
    assert index_paths([folder / "b.json"], index).skipped
    assert not index.exists()


def test_progress_runs_from_none_to_all(folder: Path, index: DocumentIndex) -> None:
    write_records(folder / "a.jsonl", [{"text": f"Text {number}."} for number in range(3)])
    (folder / "b.txt").write_text("x")
    calls: list[tuple[int, int, str]] = []
    index_paths([folder], index, progress=lambda *told: calls.append(told))
    assert [call[:2] for call in calls] == [(0, 2), (0, 2), (0, 2), (1, 2), (2, 2)]
    assert calls[0][2].endswith("a.jsonl#1")


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


def read_elsewhere(found: Found, held: Held) -> Iterator[FromFile]:
    """Read what is sent, as Ray sends it; what the index holds is not embedded."""
    for one in worker(Environment(), held)(found):
        assert (one.chunks is None) == (getattr(one.loaded, "source", "") in held)
        yield pickle.loads(pickle.dumps(one))  # noqa: S301 - our own


def test_the_index_is_that_of_one_process(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in ("a", "c"):
        (texts / f"{name}.md").write_text(f"# {name}\n\nMason {name} built bridge {name}.\n")
    (texts / "copy.md").write_text((texts / "a.md").read_text())
    lines = [{"id": str(n), "text": f"River {n}."} for n in range(20)]
    (texts / "b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    content, reports = [], []
    for name, options in (("here", {}), ("elsewhere", {"reader": read_elsewhere})):
        with open_index(tmp_path / name, packaged_encoder()) as index:
            reports.append(index_paths([texts], index, **options))  # type: ignore[arg-type]
            content.append({one.id: one.metadata for one in index.stored()})
            again = index_paths([texts], index, **options)  # type: ignore[arg-type]
            assert (again.unchanged, again.chunks) == (reports[0].added, 0)
    assert content[0] == content[1]
    assert reports[0].added == reports[1].added == 23
