"""What workers read and embed becomes the index of one process; `test_ray.py` uses Ray."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from crag.cli.index_workers import RECORDS, digests, embedder, reader
from crag.documents.loaders import LOADERS, Found
from crag.index import DocumentIndex, index_paths
from crag.index.update import FromFile, Held
from crag.models.encoder import packaged_encoder
from crag.runtime.environment import Environment


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nMason {name} built bridge {name}.\n")
    (folder / "copy.md").write_text((folder / "a.md").read_text())
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    lines = [{"id": str(n), "text": f"River {n}."} for n in range(RECORDS + 4)]
    (folder / "b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def read_elsewhere(found: Found, held: Held) -> Iterator[FromFile]:
    """Read in parts that are sent, as Ray sends them."""
    shared, files = (
        Environment().shared(),
        [(file, str(root)) for file, root in found.files.items()],
    )
    read, embed = reader(shared, found.loaders), embedder(shared, digests(held))
    for part in read(files):
        for made in embed(pickle.loads(pickle.dumps(part))):  # noqa: S301 - our own
            yield from pickle.loads(pickle.dumps(made))  # noqa: S301


def test_the_index_is_that_of_one_process(texts: Path, tmp_path: Path) -> None:
    content, reports = [], []
    for name, options in (("here", {}), ("elsewhere", {"reader": read_elsewhere})):
        with DocumentIndex(tmp_path / name, packaged_encoder()) as index:
            reports.append(index_paths([texts], index, **options))  # type: ignore[arg-type]
            content.append({one.id: one.metadata for one in index.stored()})
            again = index_paths([texts], index, **options)  # type: ignore[arg-type]
            assert (again.unchanged, again.chunks) == (reports[0].added, 0)
            (texts / "c.md").write_text(f"# New\n\nIt is {name} and longer than before.\n")
            assert index_paths([texts], index, **options).changed == 1  # type: ignore[arg-type]
            (texts / "c.md").write_text("# c\n\nMason c built bridge c.\n")
    assert content[0] == content[1]
    assert reports[0].finished(0.0).skipped == reports[1].finished(0.0).skipped
    assert reports[0].added == reports[1].added == RECORDS + 7


def test_documents_are_read_in_order_in_parts_and_embedded_unless_the_index_has_them(
    texts: Path,
) -> None:
    shared = Environment().shared()
    files = [(texts / name, str(texts)) for name in ("a.md", "b.jsonl", "broken.pdf", "c.md")]
    parts = list(reader(shared, LOADERS)(files))
    assert [len(part) for part in parts] == [RECORDS, 7]
    read = [one for part in parts for one in part]
    assert [read[0].file, read[1].file, read[-1].file] == [files[place][0] for place in (0, 1, 3)]
    held = {str(texts / "a.md"): [read[0].loaded.content_hash], "gone.md": ["0"]}  # type: ignore[union-attr]
    (made,) = embedder(shared, digests(held))([read[0], read[-2], read[-1]])
    assert [one.made is None for one in made] == [True, True, False]
    last = made[-1].made
    assert last is not None
    assert last.vectors is not None
    assert len(last.vectors) == len(last.chunks) == 1


def test_workers_are_told_everything_but_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
    monkeypatch.setenv("CRAG_INDEX", "index")
    monkeypatch.setenv("CRAG_MODEL", "a-model")
    shared = Environment().shared()
    assert "a-key-of-mine" not in repr(shared)
    monkeypatch.delenv("CRAG_MODEL")
    monkeypatch.delenv("CRAG_INDEX")
    there = Environment.of(shared)
    assert (there.index, there.model) == (str(tmp_path / "index"), "a-model")
    assert there.openai_api_key == Environment().openai_api_key
    assert hash(shared) is not None
