"""Loaders of LangChain, named ``module:Class``, for formats that `crag` does not read itself."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name

from langchain_core.document_loaders import BaseLoader

from crag.documents.loaders import LOADERS
from crag.documents.sources import Loader, SourceText, in_units
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
        problem = f"it cannot be imported, name module:Class ({error})"
        raise SettingsError("loader", name, problem) from error
    if not (isinstance(made, type) and issubclass(made, BaseLoader)):
        problem = "it is no loader: a class that extends LangChain's BaseLoader"
        raise SettingsError("loader", name, problem)

    def load(path: Path) -> Iterator[SourceText]:
        check_size(path)
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
