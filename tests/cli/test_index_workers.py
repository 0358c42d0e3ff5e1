"""What workers read and embed becomes the index of one process; `test_ray.py` uses Ray."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

from crag.cli.index_workers import worker
from crag.documents.loaders import Found
from crag.index import DocumentIndex, index_paths
from crag.index.update import FromFile, Held
from crag.models.encoder import packaged_encoder
from crag.runtime.environment import Environment


def read_elsewhere(found: Found, held: Held) -> Iterator[FromFile]:
    """Read what is sent, as Ray sends it; what the index holds is not embedded."""
    for one in worker(Environment().shared(), held)(found):
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
        with DocumentIndex(tmp_path / name, packaged_encoder()) as index:
            reports.append(index_paths([texts], index, **options))  # type: ignore[arg-type]
            content.append({one.id: one.metadata for one in index.stored()})
            again = index_paths([texts], index, **options)  # type: ignore[arg-type]
            assert (again.unchanged, again.chunks) == (reports[0].added, 0)
    assert content[0] == content[1]
    assert reports[0].added == reports[1].added == 23
