"""The documents that the page manages: what is listed, taken, shown, removed, and refused."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from starlette.applications import Starlette
from starlette.testclient import TestClient

from crag.documents.loaders import LOADERS
from crag.documents.sources import SourceText
from crag.errors import DocumentIndexError
from crag.index import DocumentIndex, Limits, index_paths
from crag.page.app import middleware
from crag.page.documents import MOST_SHOWN, ROUTES, DocumentError, Library, check_upload
from crag.page.documents import library as of_the_environment
from crag.page.rules import Rules
from tests.documents.reading import plain_document
from tests.web.site import PARAGRAPHS, pdf

ADA = b"# Ada\n\nAda wrote the first program.\n\nIt came in 1843."


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
    shown = await library.show(file["path"])
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
    assert (await library.show(str(own)))["changed"]
    await library.remove(str(own))
    assert library.files() == []
    assert own.exists()


async def test_files_of_one_name_are_called_by_names_that_open_each(
    library: Library, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "ada.md"
    own.parent.mkdir()
    own.write_text("Ada of my own.")
    index_paths([own.parent], library.index)
    assert [one["name"] for one in library.files()] == ["ada.md"]
    await library.add("ada.md", ADA)
    texts = [(await library.show(one["name"]))["text"] for one in library.files()]
    assert texts == ["Ada of my own.", ADA.decode()]


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
            await library.show(path)
        with pytest.raises(DocumentError, match="not in the index"):
            await library.remove(path)
    assert secret.exists()
    ada = tmp_path / "uploads" / "ada.md"
    ada.unlink()
    with pytest.raises(DocumentError, match="no longer there"):
        await library.show(str(ada))
    ada.symlink_to(secret)
    with pytest.raises(DocumentError, match="leads out"):
        await library.show(str(ada))


async def test_an_index_on_a_server_needs_a_folder_for_uploads(library: Library) -> None:
    library.uploads = None
    with pytest.raises(DocumentError, match="CRAG_SERVE_UPLOADS"):
        await library.add("ada.md", ADA)


async def test_what_the_page_cannot_show_is_told(library: Library, tmp_path: Path) -> None:
    def leaves(path: Path) -> Iterator[SourceText]:
        yield plain_document(str(path), path.read_text())

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
            await library.show(str(source))
        assert caught.value.status == status


async def test_an_upload_that_cannot_be_written_leaves_nothing(library: Library) -> None:
    assert library.uploads
    (library.uploads / "ada.md").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        await library.add("ada.md", ADA)
    assert [one.name for one in library.uploads.iterdir()] == ["ada.md"]


def connected(rules: Rules | None = None, address: str = "127.0.0.1") -> TestClient:
    """Return a client of the routes behind their guard."""
    around = middleware(rules or Rules())
    content = {"Content-Type": "application/octet-stream"}
    app = Starlette(routes=ROUTES, middleware=around)
    return TestClient(app, "http://127.0.0.1", client=(address, 9), headers=content)


async def held(library: Library) -> tuple[list[str], str]:
    """Return the names of the files, and the text that the index has of `ada.md`."""
    assert library.uploads
    files = sorted(one.name for one in library.uploads.iterdir())
    (found,) = library.index.search("Ada", 1)
    return files, found.page_content


@pytest.mark.parametrize(
    ("name", "good", "broken", "said"),
    [
        ("ada.html", b"<p>Ada wrote it.", b"<div>" * 9_000 + b"deep", "nest deeper"),
        (
            "ada.jsonl",
            b'{"text": "Ada wrote it."}',
            b'{"text": "Ada"}\n{broken',
            "line 2: not JSON",
        ),
        ("ada.csv", b"text\nAda wrote it.", b"text\n\n", "empty"),
    ],
)
async def test_a_replacement_that_cannot_be_read_changes_nothing(
    library: Library, name: str, good: bytes, broken: bytes, said: str
) -> None:
    assert library.uploads
    await library.add(name, good)
    before = await held(library)
    with pytest.raises(DocumentError, match=said) as caught:
        await library.add(name, broken)
    assert caught.value.status in {415, 422}
    assert await held(library) == before
    assert (library.uploads / name).read_bytes() == good


async def test_a_replacement_that_takes_too_long_changes_nothing(tmp_path: Path) -> None:
    index = DocumentIndex(tmp_path / "index", DeterministicFakeEmbedding(size=8))
    library = Library(index, tmp_path / "uploads")
    await library.add("ada.rst", b"Ada wrote it.")
    before = await held(library)
    library = Library(index, tmp_path / "uploads", Limits(seconds=1))
    with pytest.raises(DocumentError, match="CRAG_READ_SECONDS"):
        await library.add("ada.rst", b"* a\n\n" * 100_000)
    assert await held(library) == before


async def test_while_another_run_writes_nothing_changes(library: Library) -> None:
    await library.add("ada.md", ADA)
    before = await held(library)
    with library.index.writing():
        for attempt in (
            library.add("ada.md", b"# Ada King\n\nShe wrote it.\n"),
            library.add("new.md", b"# New\n\nNobody wrote it.\n"),
            library.remove(str((library.uploads or Path()) / "ada.md")),
        ):
            with pytest.raises(DocumentIndexError, match="another run is writing"):
                await attempt
    assert await held(library) == before
    assert ((library.uploads or Path()) / "ada.md").read_bytes() == ADA


async def test_a_file_is_put_back_where_the_index_cannot_be_written(tmp_path: Path) -> None:
    class Full(DeterministicFakeEmbedding):
        """Makes vectors that the index does not take."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            size = 4 if "King" in texts[0] else 8
            return [[0.5] * size for _ in texts]

    library = Library(DocumentIndex(tmp_path / "index", Full(size=8)), tmp_path / "uploads")
    await library.add("ada.md", ADA)
    before = await held(library)
    for name in ("ada.md", "new.md"):
        with pytest.raises(DocumentIndexError, match="4 dimensions"):
            await library.add(name, b"# Ada King\n\nShe wrote it.\n")
    assert await held(library) == before
    assert (tmp_path / "uploads" / "ada.md").read_bytes() == ADA


async def test_of_two_uploads_at_once_file_and_index_are_of_one(library: Library) -> None:
    assert library.uploads
    texts = [f"<h1>Ada</h1><p>Ada wrote number {number}." for number in range(4)]
    added = (library.add("ada.html", text.encode()) for text in texts)
    await asyncio.gather(*added)
    files, text = await held(library)
    assert files == ["ada.html"]
    assert (library.uploads / "ada.html").read_text() in texts
    assert (library.uploads / "ada.html").read_text().endswith(text.rpartition("Ada")[2])
    assert library.index.count() == 1


async def test_a_document_is_removed_while_another_one_is_read(library: Library) -> None:
    assert library.uploads
    await library.add("ada.md", ADA)
    adding = asyncio.create_task(library.add("slow.rst", b"* a\n\n" * 3_000))
    while library.progress is None:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.01)
    await library.remove(str(library.uploads / "ada.md"))
    assert not adding.done()
    await adding
    assert [Path(one["path"]).name for one in library.files()] == ["slow.rst"]
    assert [one.name for one in library.uploads.iterdir()] == ["slow.rst"]


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


def test_pages_of_a_pdf_are_drawn_over_http(client: TestClient, tmp_path: Path) -> None:
    client.put("/documents/ada.md", content=ADA)
    client.put("/documents/mill.pdf", content=pdf())
    uploads = tmp_path / "index-uploads"
    asked = {"source": str(uploads / "mill.pdf"), "page": "1", "mark": PARAGRAPHS[0]}
    drawn = client.get("/documents/picture", params=asked)
    assert (drawn.headers["content-type"], drawn.content[:4]) == ("image/png", b"\x89PNG")
    assert 0 < float(drawn.headers["x-marked-at"]) < 1
    for wrong, status, said in (
        ({"page": "9"}, 422, "mill.pdf: page 9 of 1 does not exist"),
        ({"page": "-1"}, 400, "page: allowed are whole numbers from 1"),
        ({"source": str(uploads / "ada.md")}, 415, "ada.md is no PDF"),
        ({"source": "/etc/passwd"}, 404, "/etc/passwd is not in the index"),
    ):
        refused = client.get("/documents/picture", params=asked | wrong)
        assert refused.status_code == status
        assert said in refused.json()["detail"]


@pytest.mark.usefixtures("client")
def test_a_browser_outside_the_container_has_the_library_with_the_token_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with `docker compose up page`, where each request comes from the bridge."""
    monkeypatch.setenv("CRAG_SERVE_TOKEN", "a-token-of-the-tests")
    outside = connected(Rules(), "172.17.0.1")
    assert outside.put("/documents/ada.md", content=ADA).status_code == 401
    outside.headers["x-api-key"] = "a-token-of-the-tests"
    assert outside.put("/documents/ada.md", content=ADA).status_code == 200
    (file,) = outside.get("/documents").json()["files"]
    assert outside.get("/documents/source", params={"source": file["path"]}).status_code == 200
    assert outside.delete("/documents", params={"path": file["path"]}).json() == {}
    monkeypatch.delenv("CRAG_SERVE_TOKEN")
    assert connected(Rules(), "172.17.0.1").get("/documents").status_code == 403


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
