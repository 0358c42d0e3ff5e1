"""`crag index --ray`: workers read, split and embed; this process compares and writes.

One process writes because stores in a folder take one writer, and because the metadata of the index
are the only record of what is in it: a run that was killed goes on where the index ends.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader
from crag.documents.loaders import Found
from crag.documents.sources import Loader, SourceText
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index.store import embedded
from crag.index.update import FromFile, Held, Reader
from crag.runtime.environment import Environment
from crag.runtime.ray_cluster import spread

FILES = 16
"""How many files a worker is given at once: what a lost worker costs."""


def ray_reader(environment: Environment, address: str) -> Reader:
    """Return what reads, splits and embeds on all cores of the Ray cluster at `address`.

    The documents come in the order of the files, so that the index is that of one process to the
    last duplicate.
    """

    def read(found: Found, held: Held) -> Generator[FromFile]:
        files = [(file, str(root)) for file, root in found.files.items()]
        groups = [files[at : at + FILES] for at in range(0, len(files), FILES)]
        step = partial(worker, environment.shared(), dict(found.loaders), held)
        yield from spread(groups, step, address=address, in_order=True)

    return read


def worker(
    shared: Mapping[str, Any], loaders: Mapping[str, Loader], held: Held
) -> Callable[[Sequence[tuple[Path, str]]], Iterator[FromFile]]:
    """Return what reads files, and splits and embeds the documents that the index does not hold."""
    place = Environment(**shared)
    limits, encoder = choose_limits(place), choose_encoder(place)

    def read(files: Sequence[tuple[Path, str]]) -> Iterator[FromFile]:
        with IsolatedReader(limits) as isolated:
            for file, root in files:
                for loaded in isolated.read(file, loaders=loaders):
                    one = FromFile(file, root, loaded)
                    is_held = held.get(loaded.source) == getattr(loaded, "content_hash", "")
                    if isinstance(loaded, SourceText) and not is_held:
                        chunks = split(loaded, root)
                        one = one._replace(chunks=chunks, vectors=embedded(chunks, encoder))
                    yield one

    return read
