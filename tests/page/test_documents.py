"""The documents that the page manages: what is listed, taken, shown, removed, and refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from starlette.applications import Starlette
from starlette.testclient import TestClient

from crag.page.app import middleware
from crag.page.documents import MOST_SHOWN, ROUTES, DocumentError, Library, check_upload
from crag.page.documents import library as of_the_environment
from crag.page.rules import Rules
from crag.retrieval import DocumentIndex, index_paths
from crag.retrieval.documents import SourceText
from crag.retrieval.loaders import LOADERS

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


async def test_what_the_page_cannot_show_is_told(library: Library, tmp_path: Path) -> None:
    def leaves(path: Path) -> Iterator[SourceText]:
        yield SourceText(source=str(path), title="", text=path.read_text(), unit="line")

    own = tmp_path / "own"
    own.mkdir()
    (own / "a.leaf").write_text("Kettles boil.")
    (own / "b.jsonl").write_text('{"id": "x", "text": "Ada wrote it."}')
    (own / "c.txt").write_text("short")
    index_paths([own], library.index, loaders={**LOADERS, ".leaf": leaves})
    (own / "b.jsonl").write_text('{"id": "y", "text": "Ada wrote it."}')
    (own / "c.txt").write_text("long " * (MOST_SHOWN // 5 + 1))
    for source, status, said in [
        (own / "a.leaf", 415, "a loader of `crag index --loader`, which the page does not have"),
        (f"{own / 'b.jsonl'}#x", 410, "can no longer be read"),
        (own / "c.txt", 413, "has more than 2,000,000 characters: open it in an editor"),
    ]:
        with pytest.raises(DocumentError, match=re.escape(said)) as caught:
            library.show(str(source))
        assert caught.value.status == status


async def test_an_upload_that_cannot_be_written_leaves_nothing(library: Library) -> None:
    assert library.uploads
    (library.uploads / "ada.md").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        await library.add("ada.md", ADA)
    assert [one.name for one in library.uploads.iterdir()] == ["ada.md"]


def connected(rules: Rules | None = None) -> TestClient:
    """Return a client of the routes behind their guard."""
    around = middleware(rules or Rules())
    content = {"Content-Type": "application/octet-stream"}
    app = Starlette(routes=ROUTES, middleware=around)
    return TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 9), headers=content)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client of the routes, for an index of the environment."""
    monkeypatch.setenv("CRAG_INDEX", str(tmp_path / "index"))
    of_the_environment.cache_clear()
    with connected() as client:
        yield client
    of_the_environment().index.close()
    of_the_environment.cache_clear()


def test_documents_are_managed_over_http(client: TestClient, tmp_path: Path) -> None:
    before = client.get("/documents").json()
    assert (before["files"], before["uploads"], ".md" in before["accepted"]) == ([], True, True)
    assert before["most_bytes"] == Rules().max_bytes
    added = client.put("/documents/ada.md", content=ADA).json()
    path = str(tmp_path / "index-uploads" / "ada.md")
    assert added == {"path": path, "chunks": 1, "warning": ""}
    assert client.get("/documents/progress").json() is None
    (listed,) = client.get("/documents").json()["files"]
    assert (listed["path"], listed["title"]) == (path, "Ada")
    shown = client.get("/documents/source", params={"source": path})
    assert (shown.json()["text"], shown.headers["cache-control"]) == (ADA.decode(), "no-store")
    assert client.delete("/documents", params={"path": path}).json() == {}
    gone = client.delete("/documents", params={"path": path})
    assert (gone.status_code, gone.json()) == (404, {"detail": f"{path} is not in the index"})


@pytest.mark.usefixtures("client")
def test_every_user_sees_the_documents_and_editors_change_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRAG_SERVE_KEYS", "ada=key-of-ada-0123456789, bob=key-of-bob-0123456789")
    monkeypatch.setenv("CRAG_SERVE_EDITORS", "ada")
    of_users = connected(Rules())
    for name, edits, status in (("ada", True, 200), ("bob", False, 403)):
        of_users.headers["x-api-key"] = f"key-of-{name}-0123456789"
        told = of_users.get("/documents", headers={"X-Forwarded-For": "192.0.2.7"}).json()
        assert (told["uploads"], told["edits"]) == (edits, edits)
        added = of_users.put("/documents/ada.md", content=ADA)
        assert added.status_code == status
    assert "key:bob may not add or remove documents" in added.json()["detail"]
    (file,) = of_users.get("/documents").json()["files"]
    assert of_users.get("/documents/source", params={"source": file["path"]}).status_code == 200
    assert of_users.delete("/documents", params={"path": file["path"]}).status_code == 403
    of_users.headers["x-api-key"] = "key-of-ada-0123456789"
    assert of_users.delete("/documents", params={"path": file["path"]}).json() == {}


@pytest.mark.parametrize(
    ("block", "status", "said"),
    [
        ("index", 409, "this is a file; an index is a folder"),
        ("index-uploads", 500, "File exists"),
    ],
)
def test_what_the_system_refuses_is_answered_as_json(
    client: TestClient, tmp_path: Path, block: str, status: int, said: str
) -> None:
    (tmp_path / block).write_text("x")
    reply = client.put("/documents/ada.md", content=ADA)
    assert reply.status_code == status
    assert said in reply.json()["detail"]
