"""Choose the loader of each file, and find the files to index."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crag.documents.office import load_docx, load_pptx, load_workbook
from crag.documents.pages import (
    load_code,
    load_html,
    load_markdown,
    load_notebook,
    load_pdf,
    load_rst,
    load_text,
)
from crag.documents.records import load_csv, load_json, load_jsonl
from crag.documents.sources import Loaded, Loader, SourceText, Unusable, in_units
from crag.errors import (
    ContentError,
    DocumentIndexError,
    MissingPackageError,
    SettingsError,
    SourceError,
)
from crag.events import redact
from crag.extras import attribute_named, provider_package
from crag.plain import said
from crag.text.blocks import all_within
from crag.text.encodings import storable
from crag.text.paragraphs import blocks_of_text

_logger = logging.getLogger(__name__)

_CODE = (
    ".py .pyi .js .mjs .cjs .ts .tsx .jsx .java .kt .kts .scala .groovy .c .h .cc .cpp .cxx .hpp "
    ".cs .fs .vb .go .rs .rb .php .swift .m .mm .lua .pl .pm .r .jl .hs .ml .ex .exs .erl .clj "
    ".dart .zig .nim .sh .bash .zsh .fish .ps1 .bat .sql .proto .graphql .tf .cmake .mk .toml "
    ".yaml .yml .ini .cfg .conf .properties"
)
_SUFFIXES: Mapping[Loader, str] = {
    load_markdown: ".md .markdown .mdx",
    load_rst: ".rst",
    load_html: ".html .htm .xhtml",
    load_pdf: ".pdf",
    load_docx: ".docx",
    load_pptx: ".pptx",
    load_workbook: ".xlsx .xlsm .xls .ods",
    load_notebook: ".ipynb",
    load_csv: ".csv .tsv",
    load_jsonl: ".jsonl .ndjson",
    load_json: ".json",
    load_text: ".txt .text .log .adoc .asciidoc .org .textile .wiki .mediawiki .tex",
    load_code: _CODE,
}
LOADERS: Mapping[str, Loader] = {
    suffix: loader for loader, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
"""Suffix, in lower case, to loader."""
OF_RECORDS = {load_csv, load_jsonl, load_json}
"""Loaders of files whose documents are rows or records."""
PLAIN = {load_text, load_code, load_json}
"""Loaders without native code."""
TOO_MUCH_MEMORY = (
    "reading it takes more memory than CRAG_READ_MEGABYTES allows: split it, or allow more"
)

_MOST_BYTES = 100_000_000
_TOO_LARGE = f"it has more than {_MOST_BYTES:,} bytes: split it into smaller files"
_LONGEST_TITLE = 500
"""Characters: each chunk repeats it."""


@dataclass
class Found:
    """The files under the given paths."""

    files: dict[Path, Path] = field(default_factory=dict)
    """Each supported file with the path it was found under, in indexing order."""
    unsupported: list[Path] = field(default_factory=list)
    """Files in folders that no loader reads."""
    loaders: Mapping[str, Loader] = field(default_factory=lambda: LOADERS)
    """What reads them, by suffix."""
    refused: list[Unusable] = field(default_factory=list)
    """Named files that no loader reads, folders that cannot be opened, links out of a folder, pipes
    and devices, and names that are not UTF-8."""


def find_files(paths: Sequence[Path], loaders: Mapping[str, Loader] = LOADERS) -> Found:
    """Find the files under absolute `paths`, sorted by name within each folder.

    Hidden files and folders are left out, and so are symbolic links to folders, and those to files
    out of the folder.

    Raises:
        DocumentIndexError: a path does not exist, a folder or all paths hold no supported file, or
            no path is named.
    """
    found = Found(loaders=loaders)
    for path in paths:
        if not path.exists():
            raise DocumentIndexError(str(path), "there is no such file or folder to index")
        if not path.is_dir():
            reason = _obstacle(path, path)
            if not (reason or loader_of(path, loaders)):
                reason = f"unsupported format {path.suffix or 'without suffix'}: {supported()}"
            if reason:
                found.refused.append(Unusable(storable(str(path)), reason))
            else:
                found.files.setdefault(path, path)
            continue
        files = list(_walk(path, found.refused))
        read = [file for file in files if loader_of(file, loaders)]
        if not read:
            problem = f"nothing to index in this folder of {len(files)} files: {supported()}"
            raise DocumentIndexError(str(path), problem)
        found.files |= {file: path for file in read if file not in found.files}
        found.unsupported += [file for file in files if not loader_of(file, loaders)]
    if not found.files:
        nothing = Unusable("of nothing", "name a file or a folder to index")
        refused = next(iter(found.refused), nothing)
        raise DocumentIndexError(refused.source, refused.reason)
    return found


def load(path: Path, loaders: Mapping[str, Loader] = LOADERS) -> Iterator[Loaded]:
    """Load the documents of a file of a supported format, one after the other.

    Documents without text are skipped, and so is the rest of a file that becomes unreadable.
    """
    holds_nothing = True
    try:
        is_large = path.stat().st_size > _MOST_BYTES
        loader = loaders[path.suffix.lower()]
        for loaded in [Unusable(str(path), _TOO_LARGE)] if is_large else loader(path):
            holds_nothing = False
            if isinstance(loaded, Unusable):
                yield loaded
            elif loaded.says_nothing:
                reason = "nothing but headings" if loaded.blocks else "empty"
                yield Unusable(loaded.source, reason, empty=True)
            else:
                yield _storable(loaded)
        if holds_nothing:  # Such as a CSV file of a header alone.
            yield Unusable(str(path), "empty", empty=True)
    except (ContentError, MissingPackageError, SourceError) as error:
        yield Unusable(str(path), getattr(error, "problem", str(error)))
    except OSError as error:
        yield Unusable(str(path), _reason_of(error))
    except MemoryError:
        yield Unusable(str(path), TOO_MUCH_MEMORY)
    except Exception as error:  # noqa: BLE001 - what readers of damaged files raise cannot be listed
        name = type(error).__name__
        _logger.warning("reading %r failed: %s: %s", path.name, name, redact(said(error)))
        yield Unusable(str(path), f"damaged, encrypted, or not what it seems ({name})")


def loader_of(path: Path, loaders: Mapping[str, Loader] = LOADERS) -> Loader | None:
    """Return what reads a file, by its suffix."""
    return loaders.get(path.suffix.lower())


def loaders_with(named: Iterable[str]) -> Mapping[str, Loader]:
    """Return the packaged loaders with those that `named` adds, each as ``.SUFFIX=module:Class``.

    The class is a `BaseLoader` of LangChain that takes the path of a file.

    Raises:
        SettingsError: there is no such loader, or what is named is no suffix.
    """
    given: dict[str, Loader] = {}
    for text in named:
        suffix, _, name = text.rpartition("=")
        if not re.fullmatch(r"\.\S+", suffix):
            raise SettingsError("loader", text, f"{suffix!r} is no suffix: write .srt=module:Class")
        given[suffix.lower()] = _loader(name)
    return {**LOADERS, **given}


def _loader(name: str) -> Loader:
    from langchain_core.document_loaders import BaseLoader

    made = attribute_named(name, "loader")
    if not (isinstance(made, type) and issubclass(made, BaseLoader)):
        problem = "it is no loader: a class that extends LangChain's BaseLoader"
        raise SettingsError("loader", name, problem)

    def load(path: Path) -> Iterator[SourceText]:
        try:
            found = list(made(str(path)).lazy_load())  # type: ignore[call-arg]
        except ImportError as error:
            raise MissingPackageError(provider_package(error), f"the loader {name}") from error
        known = found[0].metadata if found else {}
        parts = [blocks_of_text(one.page_content) for one in found]
        title, url = str(known.get("title") or path.stem), str(known.get("source"))
        url = url if url.startswith(("http://", "https://")) else ""
        yield in_units(path, title, parts, "page" if "page" in known else "part", url=url)

    return load


def supported() -> str:
    """Return a sentence that lists the supported formats."""
    named = [suffix for suffix, loader in LOADERS.items() if loader is not load_code]
    return f"the supported formats are {' '.join(named)} and source code"


def _storable(loaded: SourceText) -> SourceText:
    """Replace what no database takes."""
    for block in all_within(loaded.blocks):
        block.text = storable(block.text)
        block.rows = [row._replace(cells=list(map(storable, row.cells))) for row in block.rows]
    title = storable(loaded.title[:_LONGEST_TITLE])
    return replace(loaded, title=title, url=storable(loaded.url))


def _walk(root: Path, refused: list[Unusable]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        refused.append(Unusable(storable(str(error.filename)), _reason_of(error)))

    def accepted(path: Path) -> bool:
        if path.name.startswith("."):
            return False
        if reason := _obstacle(path, root):
            refused.append(Unusable(storable(str(path)), reason))
        return not reason

    for folder, names, files in os.walk(root, onerror=refuse):
        names[:] = [name for name in sorted(names) if accepted(Path(folder, name))]
        yield from filter(accepted, (Path(folder, name) for name in sorted(files)))


def _obstacle(path: Path, root: Path) -> str:
    """Say why a file or folder is not looked at; an empty text if it is."""
    if storable(str(path)) != str(path):
        return "its name is not UTF-8: rename it"
    real = os.path.realpath(path)
    if path.is_symlink() and not os.path.exists(real):  # noqa: PTH110 - Path.exists raises where it may not look
        return f"a link to {storable(real)}, which is not there"
    if path.is_symlink() and not Path(real).is_relative_to(root):
        return f"a link out of the folder, to {storable(real)}: name that path"
    if path.exists() and not (path.is_file() or path.is_dir()):
        return "a pipe, socket or device, not a file"
    return ""


def _reason_of(error: OSError) -> str:
    """Say what the operating system said, without the path."""
    return f"cannot be read: {error.strerror or error}"
