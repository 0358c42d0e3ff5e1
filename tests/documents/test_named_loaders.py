"""Loaders of LangChain that `crag index --loader` names as ``module:Class``."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS, load
from crag.documents.named_loaders import loaders_with
from crag.documents.sources import SourceText, Unusable
from crag.errors import SettingsError


class Pages(BaseLoader):
    """A loader of a user's own: each line is a page, and an empty file has none."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def lazy_load(self) -> Iterator[Document]:
        for number, line in enumerate(self._file.read_text("utf-8").splitlines()):
            yield Document(line, metadata={"page": number, "title": "Leaves"})


class Rows(Pages):
    def lazy_load(self) -> Iterator[Document]:
        for one in super().lazy_load():
            yield Document(one.page_content, metadata={"source": "https://example.org/rows"})


class Missing(Pages):
    def lazy_load(self) -> Iterator[Document]:
        raise ModuleNotFoundError(name="no_such_package")


def loaded(path: Path, *named: str) -> list[SourceText | Unusable]:
    return list(load(path, loaders_with(named)))


def own(name: str) -> str:
    return f"{__name__}:{name}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module by its name, as one of a user's package."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Pages.__module__])


def test_one_without_a_suffix_reads_every_file_and_one_with_it_only_those(folder: Path) -> None:
    path = folder / "herons.txt"
    path.write_text("Herons nest early.")
    (found,) = loaded(path, own("Pages"))
    assert isinstance(found, SourceText)
    assert (found.title, found.text, found.unit) == ("Leaves", "Herons nest early.", "page")
    assert loaders_with([own("Pages")]).keys() == {""}
    assert loaders_with([f".OWN={own('Pages')}"]).keys() == {*LOADERS, ".own"}


def test_what_it_returns_are_pages_or_parts_of_one_document(folder: Path) -> None:
    path = folder / "leaves.own"
    path.write_text("First leaf.\nSecond leaf.")
    for name, title, unit, url in (
        ("Pages", "Leaves", "page", ""),
        ("Rows", "leaves", "part", "https://example.org/rows"),
    ):
        (whole,) = loaded(path, own(name))
        assert isinstance(whole, SourceText)
        assert (whole.title, whole.unit, whole.url) == (title, unit, url)
        parts = [(one.first, one.text) for one in whole.blocks]
        assert parts == [(1, "First leaf."), (2, "Second leaf.")]


@pytest.mark.parametrize(
    ("named", "content", "reason"),
    [
        ("Missing", b"text", "needs the package 'no-such-package'"),
        ("Pages", b"", "empty"),
        ("Pages", b"\xff\xfe\xff", "damaged, or not what it seems (UnicodeDecodeError)"),
    ],
)
def test_what_a_loader_cannot_read_is_told(
    folder: Path, named: str, content: bytes, reason: str
) -> None:
    path = folder / "a.own"
    path.write_bytes(content)
    (found,) = loaded(path, own(named))
    assert isinstance(found, Unusable)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("no_such_module:Loader", "name module:Class (No module named 'no_such_module')"),
        ("pathlib:Loader", "(module 'pathlib' has no attribute 'Loader')"),
        (":Loader", "invalid format"),
        ("pathlib:Path", "it is no loader"),
        ("srt=x:Y", "'srt' is no suffix: write .srt=module:Class"),
        (".srt=", "name module:Class"),
    ],
)
def test_a_loader_that_cannot_be_used_is_refused_before_anything_is_read(
    named: str, message: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        loaders_with([named])
    assert message in str(raised.value)
