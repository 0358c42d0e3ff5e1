"""Loaders of LangChain by name, for formats that `crag` does not read itself."""

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS
from crag.documents.sources import Loader, SourceText, joined, of_file, record_source
from crag.documents.texts import check_size
from crag.errors import LoaderError, MissingPackageError, SourceError, did_you_mean
from crag.extras import provider_package, require
from crag.runtime.entry_points import imported

_COMMUNITY = "langchain_community.document_loaders"
_OF_A_FILE = {"file_path", "path", "log_file", "source"}
"""What the loaders of langchain-community that read a file call their first argument."""


def loaders_with(named: Iterable[str]) -> Mapping[str, Loader]:
    """Return the packaged loaders with those that `named` adds, each as ``[.SUFFIX=]LOADER``.

    LOADER is the name of a class of langchain-community, or ``module:Class`` of any `BaseLoader`
    that takes the path of a file. Without a suffix it reads every file that no other one in `named`
    reads, and the packaged loaders read none.

    Raises:
        LoaderError: there is no such loader, it reads no files, or a suffix is named twice.
        MissingPackageError: langchain-community, or what the loader imports, is not installed.
    """
    given: dict[str, Loader] = {}
    for text in named:
        suffix, name = _split(text)
        if suffix in given:
            read = suffix or "every file"
            raise LoaderError(text, f"another loader reads {read} already: name each suffix once")
        given[suffix] = _loader(name)
    return given if "" in given else {**LOADERS, **given}


def _split(text: str) -> tuple[str, str]:
    before, equals, after = text.rpartition("=")
    suffix, name = before.strip().lower(), after.strip()
    if not name:
        raise LoaderError(text, "name a loader: SRTLoader, or module:Class")
    if equals and not (suffix.startswith(".") and suffix[1:]):
        raise LoaderError(text, f"{suffix!r} is no suffix: write .srt=SRTLoader")
    return suffix, name


def _loader(name: str) -> Loader:
    made = _class(name)

    def load(path: Path) -> Iterator[SourceText]:
        check_size(path)
        try:
            found = list(made(str(path)).lazy_load())
        except ImportError as error:
            raise MissingPackageError(provider_package(error), f"the loader {name}") from error
        yield from _texts(path, found, name)

    return load


def _class(name: str) -> Any:
    """Return the class, after checking that it can be made from the path of a file alone."""
    is_path = ":" in name
    found = _imported(name) if is_path else _of_community(name)
    if not (isinstance(found, type) and issubclass(found, BaseLoader)):
        raise LoaderError(name, "it is no loader: a class that extends LangChain's BaseLoader")
    signature = inspect.signature(found)
    first = next(iter(signature.parameters), "")
    if not is_path and first not in _OF_A_FILE:
        raise LoaderError(name, f"it reads no file: its first argument is {first or 'missing'!r}")
    try:
        signature.bind("path")
    except TypeError as error:
        problem = f"it takes more than the path of a file ({error}): extend it in a module of yours"
        raise LoaderError(name, problem) from error
    return found


def _of_community(name: str) -> Any:
    require("community", f"the loader {name}", "langchain_community")
    with warnings.catch_warnings():  # It says that it is no longer developed; the guide does too.
        warnings.simplefilter("ignore", DeprecationWarning)
        loaders = import_module(_COMMUNITY)
        if name not in loaders.__all__:
            near = did_you_mean(name, sorted(loaders.__all__))
            near = near if near.startswith("did") else "see langchain_community.document_loaders"
            raise LoaderError(name, f"langchain-community has no such loader: {near}")
        try:
            return getattr(loaders, name)
        except ImportError as error:
            raise MissingPackageError(provider_package(error), f"the loader {name}") from error


def _imported(name: str) -> Any:
    try:
        return imported(name)
    except (ImportError, ValueError, AttributeError) as error:
        raise LoaderError(name, f"it cannot be imported: {error}") from error


def _texts(path: Path, found: Sequence[Document], name: str) -> Iterator[SourceText]:
    """Turn what a loader returns into documents: one, one with pages, or records of the file."""
    for one in found:
        if not isinstance(one, Document):
            raise SourceError(str(path), f"{name} yields {type(one).__name__}, no Document")
    if len(found) > 1 and not all(isinstance(one.metadata.get("page"), int) for one in found):
        for number, one in enumerate(found, start=1):
            source = record_source(path, str(number))
            fields = _title_and_url(path, one.metadata)
            yield SourceText(
                source=source, text=one.page_content, unit="record", number=number, **fields
            )
        return
    fields = _title_and_url(path, found[0].metadata if found else {})
    texts = [one.page_content for one in found]
    if len(found) > 1:
        yield joined(path, parts=texts, unit="page", **fields)
    else:
        yield of_file(path, text="".join(texts), unit="paragraph", **fields)


def _title_and_url(path: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
    title, url = metadata.get("title"), metadata.get("url") or metadata.get("source")
    return {
        "title": title if isinstance(title, str) and title.strip() else path.stem,
        "url": url if isinstance(url, str) and url.startswith(("http://", "https://")) else "",
    }
