"""`crag index --ray`: workers read, split and embed; this process compares and writes.

One process writes because stores in a folder take one writer, and because the metadata of the index
are the only record of what is in it: a run that was killed goes on where the index ends.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial

from crag.documents.chunks import split
from crag.documents.loaders import Found
from crag.documents.sources import SourceText
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index.store import embedded
from crag.index.update import FromFile, Held, reader_within
from crag.runtime.environment import Environment
from crag.runtime.ray_cluster import spread

FILES = 16
"""How many files a worker is given at once: what a lost worker costs."""


def read_on_ray(
    environment: Environment, address: str, found: Found, held: Held
) -> Generator[FromFile]:
    """Read, split and embed on all cores of the Ray cluster at `address`.

    The documents come in the order of the files, so that the index is that of one process to the
    last duplicate.
    """
    files, loaders = list(found.files.items()), dict(found.loaders)
    starts = range(0, len(files), FILES)
    groups = [Found(files=dict(files[at : at + FILES]), loaders=loaders) for at in starts]
    step = partial(worker, environment, held)
    yield from spread(groups, step, address, in_order=True)


def worker(environment: Environment, held: Held) -> Callable[[Found], Iterator[FromFile]]:
    """Return what reads files, and splits and embeds the documents that the index does not hold."""
    reader, encoder = reader_within(choose_limits(environment)), choose_encoder(environment)

    def read(found: Found) -> Iterator[FromFile]:
        for one in reader(found, held):
            loaded = one.loaded
            if isinstance(loaded, SourceText) and held.get(loaded.source) != loaded.content_hash:
                chunks = split(loaded, one.root)
                yield one._replace(chunks=chunks, vectors=embedded(chunks, encoder))
            else:
                yield one

    return read
