"""Which files are found and by whom they are read; each problem is one line."""

import os
import sys
from collections.abc import Iterator
from errno import EACCES
from pathlib import Path
from typing import Any

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from crag.documents.loaders import LOADERS, find_files, load, loaders_with
from crag.documents.sources import SourceText, Unusable
from crag.errors import DocumentIndexError, SettingsError
from crag.index import DocumentIndex
from crag.index.update import index_paths
from tests.documents.reading import refusal


def test_files_are_found_in_order_without_hidden_ones(folder: Path) -> None:
    for name in ("b/2.txt", "b/1.MD", "a.txt", ".git/x.txt", "b/.x.txt", "z.exe"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    found = find_files([folder, folder / "b"])
    assert list(found.files) == [folder / "a.txt", folder / "b/1.MD", folder / "b/2.txt"]
    assert set(found.files.values()) == {folder}
    assert found.unsupported == [folder / "z.exe"]


def test_links_in_a_circle_are_followed_once(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/a.txt").write_text("x")
    (folder / "sub/again").symlink_to(folder, target_is_directory=True)
    (folder / "self.txt").symlink_to(folder / "self.txt")
    found = find_files([folder])
    assert list(found.files) == [folder / "sub/a.txt"]
    assert [one.source for one in found.refused] == [str(folder / "self.txt")]


def test_a_log_of_two_gigabytes_is_not_read(folder: Path) -> None:
    with (folder / "a.log").open("wb") as file:
        file.truncate(2_000_000_000)  # Sparse: it takes no space.
    assert "it has more than 100,000,000 bytes: split it" in refusal(folder / "a.log")


def test_a_folder_that_may_not_be_entered_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "private").mkdir()
    (folder / "a.txt").write_text("Read.")
    scan = os.scandir

    def scandir(path: Path | str) -> Any:
        if Path(path).name == "private":
            raise PermissionError(EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = find_files([folder])
    assert list(found.files) == [folder / "a.txt"]
    (refused,) = found.refused
    assert refused.source == str(folder / "private")
    assert refused.reason == "cannot be read: Permission denied"


def test_a_name_that_is_not_utf8(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.txt").write_text("Read.")
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("Not read.")
    report = index_paths([folder], index)
    assert report.added == 1
    assert [(Path(one.source).name, one.reason) for one in report.skipped] == [
        ("caf?.txt", "its name is not UTF-8: rename it")
    ]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private/secret.txt").write_text("Secret.")
    (folder / "a.txt").write_text("Read.")
    (folder / "file.txt").symlink_to(tmp_path / "private/secret.txt")
    (folder / "folder").symlink_to(tmp_path / "private", target_is_directory=True)
    (folder / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "lost.txt").symlink_to(tmp_path / "gone.txt")
    found = find_files([folder])
    assert list(found.files) == [folder / "a.txt", folder / "inside.txt"]
    out = "a link out of the folder, to {}: name that path"
    assert [(Path(one.source).name, one.reason) for one in found.refused] == [
        ("folder", out.format(tmp_path / "private")),
        ("file.txt", out.format(tmp_path / "private/secret.txt")),
        ("lost.txt", f"a link to {tmp_path / 'gone.txt'}, which is not there"),
    ]


def test_a_pipe_is_reported(folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")
    (folder / "a.txt").write_text("x")
    found = find_files([folder])
    assert list(found.files) == [folder / "a.txt"]
    assert [one.reason for one in found.refused] == ["a pipe, socket or device, not a file"]
    with pytest.raises(DocumentIndexError, match="a pipe, socket or device, not a file"):
        find_files([folder / "pipe.txt"])


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
    return f".OWN={__name__}:{name}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This module by its name, as one of a user's package."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Pages.__module__])


def test_what_it_returns_are_pages_or_parts_of_one_document(folder: Path) -> None:
    assert loaders_with([own("Pages")]).keys() == {*LOADERS, ".own"}
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
        ("Pages", b"\xff\xfe\xff", "damaged, encrypted, or not what it seems (UnicodeDecodeError)"),
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
        (
            ".srt=no_such_module:Loader",
            "named 'no_such_module': is it in this folder? Set PYTHONPATH=.",
        ),
        (".srt=:Loader", "invalid format"),
        (".srt=pathlib:Path", "it is no loader"),
        ("x:Y", "'' is no suffix: write .srt=module:Class"),
        ("srt=x:Y", "'srt' is no suffix: write .srt=module:Class"),
        (".srt=", "invalid format"),
    ],
)
def test_a_loader_that_cannot_be_used_is_refused_before_anything_is_read(
    named: str, message: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        loaders_with([named])
    assert message in str(raised.value)
