"""Replace one file and what the index has of it: both, or neither."""

import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from langchain_core.documents import Document

from crag.documents.chunks import split
from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import Found
from crag.documents.sources import SourceText
from crag.errors import SourceError
from crag.index.store import DocumentIndex
from crag.index.update import FromFile, Held, IndexReport, Made, Progress, Update, quiet
from crag.index.writer import embedded_parts


def prepared(
    staged: Path,
    file: Path,
    index: DocumentIndex,
    limits: Limits | None = None,
    progress: Progress = quiet,
) -> list[FromFile]:
    """Read, split and embed `staged`, a file of the same name as `file`, as what that is to hold.

    Raises:
        SourceError: it, or a record of it, cannot be read, or it holds no text.
    """
    read: list[tuple[SourceText, list[Document]]] = []
    with IsolatedReader(limits) as reader:
        for loaded in reader.read(staged, name=file):
            if isinstance(loaded, SourceText):
                read.append((loaded, split(loaded, str(file))))
            elif not loaded.empty:
                raise SourceError(file.name, loaded.reason)
    if not read:
        raise SourceError(file.name, "empty")
    parts = [chunks for _, chunks in read]
    count, total = 0, sum(map(len, parts))

    def show(more: int) -> None:
        nonlocal count
        count += more
        progress(len(read) * count // total, len(read), str(file))

    made = embedded_parts(parts, index.embeddings, show)
    return [
        FromFile(file, str(file), loaded, Made(*part))
        for (loaded, _), part in zip(read, made, strict=True)
    ]


def replace_file(
    staged: Path, file: Path, documents: Sequence[FromFile], index: DocumentIndex
) -> IndexReport:
    """Move `staged` to `file`, and replace what the index has of it by `documents`.

    If the index cannot be written, the file that was there is put back. Both must be in one file
    system; the folder of `staged` is the caller's to remove.

    Raises:
        DocumentIndexError: the index cannot be written, or another run is writing.
        OSError: the file cannot be replaced.
    """
    started = time.monotonic()

    def read(_found: Found, _held: Held) -> Generator[FromFile]:
        yield from documents

    with index.writing() as writer, _replaced(staged, file):
        found = Found(files={file: file})
        return Update(writer, found, [file], quiet, read).run().finished(started)


@contextmanager
def _replaced(staged: Path, file: Path) -> Iterator[None]:
    """Replace a file at once, and put the old one back if the block fails."""
    before = staged.with_name(f".before-{file.name}")
    known = file.exists()
    if known:
        shutil.copy2(file, before)
    staged.replace(file)
    try:
        yield
    except BaseException:
        if known:
            before.replace(file)
        else:
            file.unlink(missing_ok=True)
        raise
