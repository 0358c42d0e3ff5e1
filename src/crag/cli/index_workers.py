"""`crag index --ray`: workers read, split and embed; this process compares and writes.

One process writes because stores in a folder take one writer, and because the metadata of the index
are the only record of what is in it: a run that was killed goes on where the index ends.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader
from crag.documents.loaders import Found
from crag.documents.sources import Loader, SourceText
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index.update import FromFile, Held, Made, Reader
from crag.index.writer import embedded_parts
from crag.runtime.environment import Environment, Shared
from crag.runtime.ray_cluster import spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Digests = NDArray[np.uint64]

FILES, RECORDS = 16, 256
"""How many files an actor reads, and how many documents another one embeds, before it is asked for
the next ones: what a lost worker costs."""
Part = list[FromFile]


def ray_reader(environment: Environment, address: str) -> Reader:
    """Return what reads, splits and embeds on all cores of the Ray cluster at `address`.

    The documents come in the order of the files, so that the index is that of one process to the
    last duplicate.
    """

    def read(found: Found, held: Held) -> Generator[FromFile]:
        shared = environment.shared()
        files = iter([(file, str(root)) for file, root in found.files.items()])
        groups = iter(lambda: list(islice(files, FILES)), [])
        reading = partial(reader, shared, dict(found.loaders))
        embedding = partial(embedder, shared, digests(held))
        for part in spread(groups, reading, embedding, address=address, in_order=True):
            yield from part

    return read


def reader(
    shared: Shared, loaders: Mapping[str, Loader]
) -> Callable[[Sequence[tuple[Path, str]]], Iterator[Part]]:
    """Return what reads files into parts of at most `RECORDS` documents."""
    limits = choose_limits(Environment.of(shared))

    def read(files: Sequence[tuple[Path, str]]) -> Iterator[Part]:
        with IsolatedReader(limits) as isolated:
            documents = (
                FromFile(file, root, loaded)
                for file, root in files
                for loaded in isolated.read(file, loaders=loaders)
            )
            yield from iter(lambda: list(islice(documents, RECORDS)), [])

    return read


def embedder(shared: Shared, held: "Digests") -> Callable[[Part], list[Part]]:
    """Return what splits and embeds the documents of a part that the index does not hold."""
    encoder = choose_encoder(Environment.of(shared))

    def embed(part: Part) -> list[Part]:
        new = [
            (place, split(one.loaded, one.root))
            for place, one in enumerate(part)
            if isinstance(one.loaded, SourceText) and not _is_held(held, one.loaded)
        ]
        made = embedded_parts([chunks for _, chunks in new], encoder) if new else ()
        for (place, _), one in zip(new, made, strict=True):
            part[place] = part[place]._replace(made=Made(*one))
        return [part]

    return embed


def digests(held: Held) -> "Digests":
    """Return what workers are told of the index: eight bytes for each document, sorted."""
    import numpy as np

    known = [_digest(source, one) for source, hashes in held.items() for one in hashes]
    return np.sort(np.array(known, np.uint64))


def _is_held(held: "Digests", document: SourceText) -> bool:
    digest = _digest(document.source, document.content_hash)
    place = int(held.searchsorted(digest))
    return place < len(held) and int(held[place]) == digest


def _digest(source: str, content_hash: str) -> int:
    told = blake2b(f"{source}\0{content_hash}".encode(), digest_size=8)
    return int.from_bytes(told.digest())
