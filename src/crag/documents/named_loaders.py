"""Loaders of LangChain, named ``module:Class``, for formats that `crag` does not read itself."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS
from crag.documents.sources import Loader, SourceText, in_units, of_blocks, record_source
from crag.documents.texts import check_size
from crag.errors import MissingPackageError, SettingsError
from crag.extras import provider_package
from crag.text.paragraphs import blocks_of_text


def loaders_with(named: Iterable[str]) -> Mapping[str, Loader]:
    """Return the packaged loaders with those that `named` adds, each as ``[.SUFFIX=]module:Class``.

    The class is a `BaseLoader` that takes the path of a file. Without a suffix it reads every file
    that no other one in `named` reads, and the packaged loaders read none.

    Raises:
        SettingsError: there is no such loader, or what is named is no suffix.
    """
    given: dict[str, Loader] = {}
    for text in named:
        suffix, equals, name = text.rpartition("=")
        if equals and not re.fullmatch(r"\.\S+", suffix):
            raise SettingsError("loader", text, f"{suffix!r} is no suffix: write .srt=module:Class")
        given[suffix.lower()] = _loader(name)
    return given if "" in given else {**LOADERS, **given}


def _loader(name: str) -> Loader:
    try:
        made = resolve_name(name)
    except (ImportError, ValueError, AttributeError) as error:
        raise SettingsError(
            "loader", name, f"it cannot be imported, name module:Class ({error})"
        ) from error
    if not (isinstance(made, type) and issubclass(made, BaseLoader)):
        raise SettingsError(
            "loader", name, "it is no loader: a class that extends LangChain's BaseLoader"
        )

    def load(path: Path) -> Iterator[SourceText]:
        check_size(path)
        try:
            found = list(made(str(path)).lazy_load())  # type: ignore[call-arg]
        except ImportError as error:
            raise MissingPackageError(provider_package(error), f"the loader {name}") from error
        yield from _documents(path, found)

    return load


def _documents(path: Path, found: Sequence[Document]) -> Iterator[SourceText]:
    """Turn what a loader returns into documents: one, one with pages, or records of the file."""
    texts = [blocks_of_text(one.page_content) for one in found]
    has_pages = all(isinstance(one.metadata.get("page"), int) for one in found)
    if len(found) == 1:
        yield of_blocks(path, blocks=texts[0], unit="paragraph", **_described(path, found[0]))
    elif found and has_pages:
        yield in_units(path, parts=texts, unit="page", **_described(path, found[0]))
    else:
        for number, (one, blocks) in enumerate(zip(found, texts, strict=True), start=1):
            record = of_blocks(path, blocks=blocks, unit="record", **_described(path, one))
            source = record_source(path, str(number))
            yield replace(record, source=source, number=number)


def _described(path: Path, document: Document) -> dict[str, Any]:
    title, url = (document.metadata.get(name) for name in ("title", "url"))
    url = url or document.metadata.get("source")
    return {
        "title": title if isinstance(title, str) and title.strip() else path.stem,
        "url": url if isinstance(url, str) and url.startswith(("http://", "https://")) else "",
    }
