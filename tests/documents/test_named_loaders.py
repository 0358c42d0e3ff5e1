"""Loaders of LangChain that `crag index --loader` names, with real ones of langchain-community."""

import json
import sys
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS, load
from crag.documents.sources import SourceText, Unusable
from crag.errors import CragError, LoaderError, MissingPackageError
from crag.index import DocumentIndex, IndexReport, index_paths, loaders_with
from tests.commands import crag

SENTENCE = "# text = Herons nest early\n" + "".join(
    f"{number}\t{word}\t_\t_\t_\t_\t_\t_\t_\t_\n"
    for number, word in enumerate(("Herons", "nest", "early"), start=1)
)
"""CoNLL-U, as treebanks have it; its loader needs no further package."""


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


class TwoArguments(Pages):
    def __init__(self, file: str, mark: str) -> None:
        super().__init__(file, mark)


def saved_page(path: Path, title: str, text: str) -> Path:
    """Write a web page as browsers save it in one file."""
    page = EmailMessage()
    page["Subject"] = title
    html = f"<html><head><title>{title}</title></head><body><p>{text}</p>"
    page.set_content(html, subtype="html")
    page.make_related()
    path.write_bytes(page.as_bytes())
    return path


def loaded(path: Path, *named: str) -> list[SourceText | Unusable]:
    return list(load(path, loaders_with(named)))


def own(name: str) -> str:
    return f"{__name__}:{name}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module by its name, as one of a user's package."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Pages.__module__])


def test_a_loader_of_langchain_community_by_name(folder: Path) -> None:
    path = saved_page(folder / "kettle.mhtml", "Kettles", "A kettle boils water.")
    (found,) = loaded(path, ".mhtml=MHTMLLoader")
    assert isinstance(found, SourceText)
    assert (found.title, found.unit, found.url) == ("Kettles", "paragraph", "")
    assert "A kettle boils water." in found.text


def test_one_without_a_suffix_reads_every_file(folder: Path) -> None:
    path = folder / "treebank.txt"
    path.write_text(SENTENCE)
    (found,) = loaded(path, "CoNLLULoader")
    assert isinstance(found, SourceText)
    assert (found.title, found.text) == ("treebank", "Herons nest early")
    assert loaders_with(["CoNLLULoader"]).keys() == {""}


def test_the_packaged_loaders_stay_beside_one_with_a_suffix() -> None:
    given = loaders_with([".CONLLU=CoNLLULoader"])
    assert given.keys() == {*LOADERS, ".conllu"}
    assert loaders_with([]) == LOADERS


def test_documents_with_pages_are_one_document_and_others_are_records(folder: Path) -> None:
    path = folder / "leaves.own"
    path.write_text("First leaf.\nSecond leaf.")
    (whole,) = loaded(path, own("Pages"))
    assert isinstance(whole, SourceText)
    assert (whole.title, whole.unit, whole.url) == ("Leaves", "page", "")
    assert [whole.text[start:] for start in whole.pages] == [
        "First leaf.\n\nSecond leaf.",
        "Second leaf.",
    ]
    rows = loaded(path, own("Rows"))
    assert [(one.source, one.title, one.url) for one in rows if isinstance(one, SourceText)] == [
        (f"{path}#1", "leaves", "https://example.org/rows"),
        (f"{path}#2", "leaves", "https://example.org/rows"),
    ]


@pytest.mark.parametrize(
    ("named", "content", "reason"),
    [
        (".own=SRTLoader", "text", "the loader SRTLoader needs the package 'pysrt'"),
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
        ("MHTMLoader", "no such loader: did you mean MHTMLLoader or"),
        ("xxxxxxxx", "no such loader: see langchain_community.document_loaders"),
        ("WebBaseLoader", "it reads no file: its first argument is 'web_path'"),
        ("JSONLoader", "it takes more than the path of a file (missing a required argument: 'jq"),
        ("Blob", "it is no loader: a class that extends LangChain's BaseLoader"),
        ("no_such_module:Loader", "it cannot be imported: No module named 'no_such_module'"),
        ("pathlib:Loader", "it cannot be imported: module 'pathlib' has no attribute 'Loader'"),
        (":Loader", "it cannot be imported: Empty module name"),
        ("pathlib:Path", "it is no loader"),
        (own("TwoArguments"), "it takes more than the path of a file"),
        ("srt=MHTMLLoader", "'srt' is no suffix: write .srt=SRTLoader"),
        (".srt=", "name a loader: SRTLoader, or module:Class"),
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
        loaders_with([".srt=TextLoader", ".SRT=PythonLoader"])


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_community", None)
    with pytest.raises(MissingPackageError) as raised:
        loaders_with(["TextLoader"])
    assert "pip install -c constraints.txt '.[community]'" in str(raised.value)


def test_a_run_without_the_loader_keeps_what_it_read(folder: Path, index: DocumentIndex) -> None:
    def counts(report: IndexReport) -> tuple[int, int, int]:
        return report.added, report.unchanged, report.removed

    path = saved_page(folder / "kettle.mhtml", "Kettles", "A kettle boils water.")
    (folder / "notes.md").write_text("Notes.")
    loaders = loaders_with([".mhtml=MHTMLLoader"])
    assert counts(index_paths([folder], index, loaders=loaders)) == (2, 0, 0)
    assert counts(index_paths([folder], index)) == (0, 1, 0)
    assert counts(index_paths([folder], index, loaders=loaders)) == (0, 2, 0)
    path.unlink()
    assert counts(index_paths([folder], index)) == (0, 1, 1)


def test_a_loader_whose_own_package_is_missing_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(
        sys.modules, "langchain_community.document_loaders.sql_database", raising=False
    )
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.setitem(sys.modules, "sqlalchemy.engine", None)
    with pytest.raises(MissingPackageError, match=r"SQLDatabaseLoader.*pip install.*sqlalchemy"):
        loaders_with([".db=SQLDatabaseLoader"])


def test_the_command_answers_from_what_the_loader_read(tmp_path: Path) -> None:
    saved_page(tmp_path / "kettle.mhtml", "Kettles", "A kettle boils water in three minutes.")
    (tmp_path / "mine.py").write_text(
        "from langchain_community.document_loaders import TextLoader\n"
        "class Shouted(TextLoader):\n"
        "    def __init__(self, path):\n"
        "        super().__init__(path, encoding='utf-8')\n"
    )
    (tmp_path / "ferry.own").write_text("The ferry to Orrin leaves at seven in the morning.")
    named = ("--loader", ".mhtml=MHTMLLoader", "--loader", ".own=mine:Shouted")
    indexed = crag("index", ".", *named, "--json", folder=tmp_path)
    assert indexed.returncode == 0, indexed.stderr
    assert json.loads(indexed.stdout)["added"] == 3
    asked = crag("ask", "When does the ferry to Orrin leave?", folder=tmp_path)
    assert "“The ferry to Orrin leaves at seven" in asked.stdout
    wrong = crag("index", ".", "--loader", "MHTMLoader", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean MHTMLLoader" in wrong.stderr
