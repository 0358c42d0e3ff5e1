"""`crag index --ray`: workers load, split and embed; this process compares and writes.

Tasks, not Ray Data: blocks come back in the order of the files, so that the index is that of one
process to the last duplicate, and what is sent needs no Arrow. One process writes because stores in
a folder take one writer, and because the metadata of the index are the only record of what is in
it: a run that was killed goes on where the index ends.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import Found
from crag.documents.sources import Loader, SourceText
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index.update import FromFile, Held, Made, Reader
from crag.index.writer import embedded_parts
from crag.plain import counted
from crag.runtime.environment import Environment, Shared
from crag.runtime.ray_cluster import cluster, cores, load_ray, on_workers

FILES, BYTES = 32, 2**20
"""A block ends at so many files, or so many bytes of files: what a lost worker costs."""
RECORDS = 256
"""Of a block of records, which this process reads: only embedding takes long there."""


class FileBlock(NamedTuple):
    """Work of one task: files to read, or records that were read."""

    files: Sequence[tuple[Path, str]]
    records: Sequence[FromFile]
    held: Held

    @property
    def name(self) -> str:
        """How an error names it."""
        first = self.files[0][0] if self.files else self.records[0].loaded.source
        return f"a block of {counted(len(self.files) + len(self.records), 'source')} from {first}"


def ray_reader(environment: Environment, address: str) -> Reader:
    """Return what reads, splits and embeds on all cores of the Ray cluster at `address`.

    Raises:
        MissingPackageError: ray is not installed.
    """
    ray, shared, limits = load_ray(), environment.shared(), choose_limits(environment)

    def read(found: Found, held: Held) -> Generator[FromFile]:
        with cluster(ray, 0, address):
            work = partial(made, shared, found.loaders)
            done = on_workers(
                ray, work, blocks(found, held, limits), cores(ray),
                named=lambda block: block.name, in_order=True,
            )  # fmt: skip
            for _, documents in done:
                yield from documents

    return read


def blocks(found: Found, held: Held, limits: Limits | None = None) -> Iterator[FileBlock]:
    """Divide the files, in their order."""
    waiting: list[tuple[Path, str]] = []
    size = 0
    for file, root in found.files.items():
        if waiting and (len(waiting) == FILES or size >= BYTES or found.holds_records(file)):
            yield _of_files(waiting, held)
            waiting, size = [], 0
        if found.holds_records(file):
            yield from _of_records(file, str(root), found, held, limits)
        else:
            waiting.append((file, str(root)))
            size += file.stat().st_size if file.exists() else 0
    if waiting:
        yield _of_files(waiting, held)


def _of_files(files: Sequence[tuple[Path, str]], held: Held) -> FileBlock:
    names = {str(file) for file, _ in files}
    return FileBlock(list(files), (), {name: held[name] for name in names & held.keys()})


def _of_records(
    file: Path, root: str, found: Found, held: Held, limits: Limits | None
) -> Iterator[FileBlock]:
    with IsolatedReader(limits) as files:
        read = files.read(file, loaders=found.loaders)
        records = (FromFile(file, root, loaded) for loaded in read)
        while part := list(islice(records, RECORDS)):
            names = {one.loaded.source for one in part}
            yield FileBlock((), part, {name: held[name] for name in names & held.keys()})


def made(shared: Shared, loaders: Mapping[str, Loader], block: FileBlock) -> list[FromFile]:
    """Read a block in a worker; split and embed what the index does not hold."""
    environment = Environment.of(shared)
    read: list[FromFile] = []
    with IsolatedReader(choose_limits(environment)) as files:
        for file, root in block.files:
            read += [FromFile(file, root, one) for one in files.read(file, loaders=loaders)]
    read += block.records
    chunks: dict[int, list[Document]] = {}
    for place, one in enumerate(read):
        held = block.held.get(one.loaded.source, ())
        if isinstance(one.loaded, SourceText) and one.loaded.content_hash not in held:
            chunks[place] = split(one.loaded, one.root)
    if not chunks:
        return read
    with_vectors = embedded_parts(list(chunks.values()), _encoder(shared))
    for place, made_part in zip(chunks, with_vectors, strict=True):
        read[place] = read[place]._replace(made=Made(*made_part))
    return read


@cache
def _encoder(shared: Shared) -> Embeddings:
    """Keep the encoder between blocks."""
    return choose_encoder(Environment.of(shared))
