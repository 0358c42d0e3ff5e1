"""Choose the loader of each file, and find the files to index."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crag.errors import ContentError, DocumentIndexError, SourceError
from crag.retrieval.documents import Loaded, Loader, Skipped, Unusable
from crag.retrieval.pages import load_docx, load_html, load_markdown, load_pdf, load_rst, load_text
from crag.retrieval.records import count_lines, load_csv, load_jsonl
from crag.retrieval.texts import reason_of
from crag.text.encodings import storable

LOADERS: Mapping[str, Loader] = {
    ".txt": load_text,
    ".md": load_markdown,
    ".markdown": load_markdown,
    ".rst": load_rst,
    ".html": load_html,
    ".htm": load_html,
    ".pdf": load_pdf,
    ".docx": load_docx,
    ".csv": load_csv,
    ".tsv": load_csv,
    ".jsonl": load_jsonl,
    ".ndjson": load_jsonl,
}
"""Suffix, in lower case, to loader."""
_OF_RECORDS = {load_csv, load_jsonl}


@dataclass
class Found:
    """The files under the given paths."""

    files: dict[Path, Path] = field(default_factory=dict)
    """Each supported file with the path it was found under, in indexing order."""
    unsupported: list[Path] = field(default_factory=list)
    """Files in folders that no loader reads."""
    refused: list[Skipped] = field(default_factory=list)
    """Named files that no loader reads, and folders that cannot be opened."""

    def documents(self) -> int:
        """Estimate the number of documents; cells with line breaks count more than once."""
        return sum(count_lines(file) if _holds_records(file) else 1 for file in self.files)


def find_files(paths: Sequence[Path]) -> Found:
    """Find the files under absolute `paths`, sorted by name within each folder.

    Hidden files and folders are skipped, and a folder that contains itself through a symbolic link
    is entered once.

    Raises:
        DocumentIndexError: a path does not exist, or a folder holds no supported file.
    """
    found = Found()
    for path in paths:
        if not path.exists():
            raise DocumentIndexError(str(path), "there is no such file or folder to index")
        if path.is_dir():
            _sort_in(path, found)
        elif _loader(path):
            found.files.setdefault(path, path)
        else:
            reason = f"unsupported format {path.suffix or 'without suffix'}: {supported()}"
            found.refused.append(Skipped(str(path), reason))
    return found


def load(path: Path) -> Iterator[Loaded]:
    """Load the documents of a supported file, one after the other.

    Documents without text are skipped, and so is the rest of a file that becomes unreadable.
    """
    try:
        for loaded in LOADERS[path.suffix.lower()](path):
            if isinstance(loaded, Unusable):
                yield loaded
            elif loaded.text.strip():
                yield replace(loaded, title=storable(loaded.title), text=storable(loaded.text))
            else:
                yield Unusable(loaded.source, "empty", empty=True)
    except (ContentError, SourceError) as error:
        yield Unusable(str(path), error.problem)


def supported() -> str:
    """Return a sentence that lists the supported formats."""
    return f"the supported formats are {' '.join(LOADERS)}"


def _loader(path: Path) -> Loader | None:
    return LOADERS.get(path.suffix.lower())


def _holds_records(path: Path) -> bool:
    return _loader(path) in _OF_RECORDS


def _sort_in(root: Path, found: Found) -> None:
    empty = True
    for file in _walk(root, found.refused):
        if _loader(file):
            found.files.setdefault(file, root)
            empty = False
        else:
            found.unsupported.append(file)
    if empty:
        raise DocumentIndexError(str(root), f"nothing to index in this folder: {supported()}")


def _walk(root: Path, refused: list[Skipped]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        refused.append(Skipped(str(error.filename), reason_of(error)))

    entered: set[Path] = set()
    for folder, names, files in os.walk(root, followlinks=True, onerror=refuse):
        real = Path(folder).resolve()
        if real in entered:
            names.clear()
            continue
        entered.add(real)
        names[:] = sorted(name for name in names if not name.startswith("."))
        paths = (Path(folder, name) for name in sorted(files) if not name.startswith("."))
        yield from (path for path in paths if path.is_file() or not path.exists())
