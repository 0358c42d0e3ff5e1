"""Loaders of LangChain that `crag index --loader` names as ``module:Class``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS, load
from crag.documents.sources import SourceText, Unusable
from crag.errors import CragError, LoaderError
from crag.index import DocumentIndex, IndexReport, index_paths, loaders_with
from tests.commands import crag


class Pages(BaseLoader):
    """A loader of a user's own: each line is a page, and an empty file has none."""

    def __init__(self, file: str, mark: str = "--") -> None:
        self._file, self._mark = Path(file), mark

    def lazy_load(self) -> Iterator[Document]:
        for number, line in enumerate(self._file.read_text("utf-8").splitlines()):
            yield Document(line, metadata={"page": number, "title": "Leaves", "url": "ftp://no"})


class Rows(Pages):
    def lazy_load(self) -> Iterator[Document]:
        for one in super().lazy_load():
            yield Document(one.page_content, metadata={"source": "https://example.org/rows"})


class Words(Pages):
    def lazy_load(self) -> Iterator[Document]:
        yield from self._file.read_text("utf-8").split()  # type: ignore[misc]


class Missing(Pages):
    def lazy_load(self) -> Iterator[Document]:
        raise ModuleNotFoundError(name="no_such_package")


class TwoArguments(Pages):
    def __init__(self, file: str, mark: str) -> None:
        super().__init__(file, mark)


def loaded(path: Path, *named: str) -> list[SourceText | Unusable]:
    return list(load(path, loaders_with(named)))


def own(name: str) -> str:
    return f"{__name__}:{name}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module by its name, as one of a user's package."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Pages.__module__])


def test_one_without_a_suffix_reads_every_file(folder: Path) -> None:
    path = folder / "herons.txt"
    path.write_text("Herons nest early.")
    (found,) = loaded(path, own("Pages"))
    assert isinstance(found, SourceText)
    assert (found.title, found.text, found.unit) == ("Leaves", "Herons nest early.", "paragraph")
    assert loaders_with([own("Pages")]).keys() == {""}


def test_the_packaged_loaders_stay_beside_one_with_a_suffix() -> None:
    assert loaders_with([f".OWN={own('Pages')}"]).keys() == {*LOADERS, ".own"}
    assert loaders_with([]) == LOADERS


def test_documents_with_pages_are_one_document_and_others_are_records(folder: Path) -> None:
    path = folder / "leaves.own"
    path.write_text("First leaf.\nSecond leaf.")
    (whole,) = loaded(path, own("Pages"))
    assert isinstance(whole, SourceText)
    assert (whole.title, whole.unit, whole.url) == ("Leaves", "page", "")
    assert [(one.first, one.text) for one in whole.blocks] == [
        (1, "First leaf."),
        (2, "Second leaf."),
    ]
    rows = loaded(path, own("Rows"))
    assert [(one.source, one.title, one.url) for one in rows if isinstance(one, SourceText)] == [
        (f"{path}#1", "leaves", "https://example.org/rows"),
        (f"{path}#2", "leaves", "https://example.org/rows"),
    ]


@pytest.mark.parametrize(
    ("named", "content", "reason"),
    [
        (own("Missing"), "text", "needs the package 'no-such-package'"),
        (own("Words"), "two words", "yields str, no Document"),
        (own("Pages"), "", "empty"),
        (own("Pages"), b"\xff\xfe\xff", "damaged, or not what it seems (UnicodeDecodeError)"),
    ],
)
def test_what_a_loader_cannot_read_is_told(
    folder: Path, named: str, content: str | bytes, reason: str
) -> None:
    path = folder / "a.own"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (found,) = loaded(path, named)
    assert isinstance(found, Unusable)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            "no_such_module:Loader",
            "it cannot be imported, name module:Class (No module named 'no_such_module')",
        ),
        ("pathlib:Loader", "(module 'pathlib' has no attribute 'Loader')"),
        (":Loader", "(Empty module name)"),
        ("pathlib:Path", "it is no loader"),
        (own("TwoArguments"), "it takes more than the path of a file"),
        ("SRTLoader", "name module:Class"),
        ("srt=x:Y", "'srt' is no suffix: write .srt=module:Class"),
        (".srt=", "name module:Class"),
    ],
)
def test_a_loader_that_cannot_be_used_is_refused_before_anything_is_read(
    named: str, message: str
) -> None:
    with pytest.raises(LoaderError) as raised:
        loaders_with([named])
    assert message in str(raised.value)
    assert isinstance(raised.value, CragError)


def test_a_suffix_has_one_loader() -> None:
    with pytest.raises(LoaderError, match=r"another loader reads \.srt already"):
        loaders_with([f".srt={own('Pages')}", f".SRT={own('Rows')}"])


def test_a_run_without_the_loader_keeps_what_it_read(folder: Path, index: DocumentIndex) -> None:
    def counts(report: IndexReport) -> tuple[int, int, int]:
        return report.added, report.unchanged, report.removed

    path = folder / "kettle.own"
    path.write_text("A kettle boils water.")
    (folder / "notes.md").write_text("Notes.")
    loaders = loaders_with([f".own={own('Pages')}"])
    assert counts(index_paths([folder], index, loaders=loaders)) == (2, 0, 0)
    assert counts(index_paths([folder], index)) == (0, 1, 0)
    assert counts(index_paths([folder], index, loaders=loaders)) == (0, 2, 0)
    path.unlink()
    assert counts(index_paths([folder], index)) == (0, 1, 1)


def test_the_command_answers_from_what_the_loader_read(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "from langchain_core.document_loaders import BaseLoader\n"
        "from langchain_core.documents import Document\n"
        "class Own(BaseLoader):\n"
        "    def __init__(self, path):\n"
        "        self.path = path\n"
        "    def lazy_load(self):\n"
        "        yield Document(Path(self.path).read_text('utf-8'))\n"
    )
    (tmp_path / "ferry.own").write_text("The ferry to Orrin leaves at seven in the morning.")
    indexed = crag("index", ".", "--loader", ".own=mine:Own", "--json", folder=tmp_path)
    assert indexed.returncode == 0, indexed.stderr
    assert json.loads(indexed.stdout)["added"] == 2
    asked = crag("ask", "When does the ferry to Orrin leave?", folder=tmp_path)
    assert "“The ferry to Orrin leaves at seven" in asked.stdout
    wrong = crag("index", ".", "--loader", "MHTMLoader", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "name module:Class" in wrong.stderr
