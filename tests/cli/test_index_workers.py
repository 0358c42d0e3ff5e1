"""What workers make of blocks becomes the index of one process; `test_ray_cluster.py` uses Ray."""

import json
import pickle
from collections.abc import Generator
from pathlib import Path

import pytest

from crag.cli.index_workers import FILES, RECORDS, blocks, made
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


def read_elsewhere(found: Found, held: Held) -> Generator[FromFile]:
    """Read in blocks that are sent, as Ray sends them."""
    shared = Environment().shared()
    for block in blocks(found, held):
        sent = pickle.loads(pickle.dumps(block))  # noqa: S301 - our own
        yield from pickle.loads(pickle.dumps(made(shared, found.loaders, sent)))  # noqa: S301


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


def test_a_block_ends_at_its_limits_and_keeps_the_order(tmp_path: Path) -> None:
    files = [tmp_path / f"{n:03}.md" for n in range(2 * FILES)]
    large = tmp_path / "large.md"
    for file in files:
        file.write_text("text")
    large.write_text("word " * 300_000)
    found = Found(files=dict.fromkeys((large, *files), tmp_path))
    divided = [[file for file, _ in block.files] for block in blocks(found, {})]
    assert list(map(len, divided)) == [1, FILES, FILES]
    assert [file for part in divided for file in part] == [large, *files]


def test_what_the_index_holds_is_not_embedded_again(texts: Path) -> None:
    files = {texts / name: texts for name in ("a.md", "c.md")}
    (block,) = blocks(Found(files=files), {})
    first, second = made(Environment().shared(), LOADERS, block)
    assert first.made is not None
    assert second.made is not None
    held = {str(texts / "a.md"): [str(first.made.chunks[0].metadata["content_hash"])]}
    (block,) = blocks(Found(files=files), held)
    first, second = made(Environment().shared(), LOADERS, block)
    assert first.made is None
    assert second.made is not None
    assert second.made.vectors is not None
    assert len(second.made.vectors) == len(second.made.chunks)


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
