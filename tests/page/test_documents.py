"""The documents that the page manages: what is listed, taken, shown, removed, and refused."""

from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from starlette.applications import Starlette
from starlette.testclient import TestClient

from crag.page.documents import ROUTES, DocumentError, Library, check_upload
from crag.page.documents import library as serving
from crag.retrieval import DocumentIndex, index_paths

ADA = b"# Ada\n\nAda wrote the first program.\n\nIt came in 1843.\n"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    index = DocumentIndex(tmp_path / "index", DeterministicFakeEmbedding(size=8))
    return Library(index, tmp_path / "uploads")


async def test_an_upload_is_saved_indexed_listed_shown_and_removed(library: Library) -> None:
    assert library.files() == []
    added = await library.add("ada.md", ADA)
    assert (added["chunks"], library.progress) == (1, None)
    (file,) = library.files()
    assert (Path(file["path"]).name, file["title"], file["uploaded"]) == ("ada.md", "Ada", True)
    shown = library.show(file["path"])
    assert (shown["text"], shown["unit"], shown["pages"]) == (ADA.decode(), "line", [])
    assert not shown["changed"]
    assert library.index.search("program", 1)[0].metadata["source"] == file["path"]
    await library.add("ada.md", b"# Ada King\n\nShe wrote it.\n")
    assert [one["title"] for one in library.files()] == ["Ada King"]
    await library.remove(file["path"])
    assert library.files() == []
    assert not any((library.uploads or Path()).iterdir())


async def test_a_file_of_a_folder_leaves_the_index_and_stays_where_it_is(
    library: Library, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "notes.txt"
    own.parent.mkdir()
    own.write_text("Kettles boil.")
    index_paths([own.parent], library.index)
    (file,) = library.files()
    assert not file["uploaded"]
    own.write_text("Kettles boil water.")
    assert library.show(str(own))["changed"]
    await library.remove(str(own))
    assert library.files() == []
    assert own.exists()


async def test_all_of_the_process_see_what_is_written(library: Library, tmp_path: Path) -> None:
    await library.add("ada.md", ADA)
    reader = DocumentIndex(tmp_path / "index", DeterministicFakeEmbedding(size=8)).open()
    assert len(reader.search("program", 5)) == 1
    await library.add("kettle.txt", b"A kettle boils water.")
    assert len(reader.search("kettle", 5)) == 2


@pytest.mark.parametrize(
    "name",
    ["../a.md", "/etc/a.md", "a/b.md", "a\\b.md", ".a.md", "", "..", "a\0.md", "a\n.md", "a" * 300],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(DocumentError, match="no name of a file") as caught:
        check_upload(name, ADA)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.exe", b"MZ", 415),
        ("a", b"text", 415),
        ("a.pdf", b"<html>", 415),
        ("a.docx", b"text", 415),
        ("a.md", b"\x7fELF\0\0", 415),
        ("a.md", b" \n", 422),
    ],
)
def test_content_that_does_not_fit_the_name_is_refused(
    name: str, content: bytes, status: int
) -> None:
    with pytest.raises(DocumentError) as caught:
        check_upload(name, content)
    assert caught.value.status == status


@pytest.mark.parametrize("name", ["a.md", "Größe 2.txt", "x.PY"])
def test_plain_files_are_taken(name: str) -> None:
    check_upload(name, ADA)
    check_upload("a.txt", "größer".encode("utf-16"))
    check_upload("a.pdf", b"%PDF-1.7")


async def test_what_cannot_be_indexed_is_not_kept(library: Library, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"broken\.pdf: "):
        await library.add("broken.pdf", b"%PDF-1.7 nothing")
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_only_what_is_in_the_index_is_shown_or_removed(
    library: Library, tmp_path: Path
) -> None:
    await library.add("ada.md", ADA)
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    beside = tmp_path / "uploads" / ".." / "secret.md"
    for path in (str(secret), str(beside), "/etc/passwd", ""):
        with pytest.raises(DocumentError, match="not in the index"):
            library.show(path)
        with pytest.raises(DocumentError, match="not in the index"):
            await library.remove(path)
    assert secret.exists()
    ada = tmp_path / "uploads" / "ada.md"
    ada.unlink()
    with pytest.raises(DocumentError, match="no longer there"):
        library.show(str(ada))
    ada.symlink_to(secret)
    with pytest.raises(DocumentError, match="leads out"):
        library.show(str(ada))


async def test_an_index_on_a_server_needs_a_folder_for_uploads(library: Library) -> None:
    library.uploads = None
    with pytest.raises(DocumentError, match="CRAG_SERVE_UPLOADS"):
        await library.add("ada.md", ADA)


def test_a_source_that_can_no_longer_be_shown_says_why(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own" / "notes.txt"
    own.parent.mkdir()
    own.write_text("Kettles boil.")
    index_paths([own.parent], library.index)
    monkeypatch.setattr("crag.page.documents.MOST_SHOWN", 5)
    with pytest.raises(DocumentError, match="more than 5 characters: open it in an editor"):
        library.show(str(own))
    monkeypatch.setattr("crag.page.documents.LOADERS", {})
    with pytest.raises(DocumentError, match="read by a loader of `crag index --loader`"):
        library.show(str(own))
    monkeypatch.undo()
    own.write_bytes(b"\0" * 40)
    with pytest.raises(DocumentError, match="can no longer be read"):
        library.show(str(own))


async def test_an_upload_that_cannot_be_written_leaves_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        await library.add("ada.md", ADA)
    assert library.uploads is not None
    assert not any(library.uploads.iterdir())


def test_the_page_asks_for_all_of_it_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_INDEX", str(tmp_path / "index"))
    serving.cache_clear()
    with TestClient(Starlette(routes=ROUTES)) as client:
        listed = client.get("/documents")
        assert listed.headers["Cache-Control"] == "no-store"
        known = listed.json()
        assert (known["files"], known["uploads"], known["most_bytes"] > 0) == ([], True, True)
        assert ".md" in known["accepted"]
        assert client.get("/documents/progress").json() is None
        assert client.put("/documents/ada.md", content=ADA).json()["chunks"] == 1
        (file,) = client.get("/documents").json()["files"]
        assert Path(file["path"]).parent == tmp_path / "index-uploads"
        shown = client.get("/documents/source", params={"source": file["path"]}).json()
        assert shown["text"] == ADA.decode()
        refused = client.put("/documents/ada.exe", content=b"MZ")
        assert (refused.status_code, "ada.exe" in refused.json()["detail"]) == (415, True)
        gone = client.get("/documents/source", params={"source": "/none"})
        assert gone.json() == {"detail": "/none is not in the index"}
        assert client.delete("/documents", params={"path": file["path"]}).json() == {}
        assert client.get("/documents").json()["files"] == []
    serving.cache_clear()


def test_a_damaged_index_is_told_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "chroma.sqlite3").write_bytes(b"no database " * 100)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_INDEX", str(tmp_path / "index"))
    serving.cache_clear()
    with TestClient(Starlette(routes=ROUTES)) as client:
        told = client.get("/documents")
        assert told.status_code == 409
        assert str(tmp_path / "index") in told.json()["detail"]
    serving.cache_clear()
