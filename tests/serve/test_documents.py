"""The documents that the page manages: what is listed, taken, shown, removed, and refused."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from crag.documents.isolated import Limits
from crag.index import index_paths, open_index
from crag.runtime.environment import Environment
from crag.serve.app import create
from crag.serve.documents import Library, examples
from crag.serve.settings import ServeSettings
from tests.serve.conftest import graphs
from tests.web.site import PARAGRAPHS, pdf

ADA = b"# Ada\n\nAda wrote the first program.\n\nIt came in 1843."


@pytest.fixture
def library(tmp_path: Path) -> Library:
    index = open_index(tmp_path / "index", DeterministicFakeEmbedding(size=8))
    return Library(index, tmp_path / "uploads", Limits())


def test_an_upload_is_saved_indexed_listed_shown_and_removed(library: Library) -> None:
    assert library.files() == []
    added = library.add("ada.md", ADA)
    assert added["chunks"] == 1
    (file,) = library.files()
    assert (Path(file["path"]).name, file["title"], file["uploaded"]) == ("ada.md", "Ada", True)
    shown = library.show(file["path"])
    assert (shown["text"], shown["unit"], shown["pages"]) == (ADA.decode(), "line", [])
    assert library.index.search("program", 1)[0].metadata["source"] == file["path"]
    library.add("ada.md", b"# Ada King\n\nShe wrote it.\n")
    assert [one["title"] for one in library.files()] == ["Ada King"]
    library.remove(file["path"])
    assert library.files() == []
    assert not any(library.uploads.iterdir())


def test_a_file_of_a_folder_leaves_the_index_and_stays_where_it_is(
    library: Library, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "notes.txt"
    own.parent.mkdir()
    own.write_text("Kettles boil.")
    index_paths([own.parent], library.index)
    (file,) = library.files()
    assert not file["uploaded"]
    own.write_text("Kettles boil water.")
    assert (library.show(str(own)))["text"] == "Kettles boil."  # As it was indexed.
    library.remove(str(own))
    assert library.files() == []
    assert own.exists()


def held(library: Library) -> tuple[list[str], str]:
    """Return the names of the files, and the text that the index has of `ada.md`."""
    files = sorted(one.name for one in library.uploads.iterdir())
    (found,) = library.index.search("Ada", 1)
    return files, found.page_content


@pytest.mark.parametrize(
    "name",
    ["../a.md", "/etc/a.md", "a/b.md", "a\\b.md", ".a.md", "", "..", "a\0.md", "a\n.md", "a" * 300],
)
def test_a_name_that_leads_elsewhere_is_refused(library: Library, name: str) -> None:
    with pytest.raises(HTTPException, match="no name of a file") as caught:
        library.add(name, ADA)
    assert caught.value.status_code == 400


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.exe", b"MZ", 415),
        ("a", b"text", 415),
        ("a.pdf", b"<html>", 422),
        ("a.docx", b"text", 422),
        ("a.md", b"\x7fELF\0\0", 422),
        ("a.md", b" \n", 422),
    ],
)
def test_content_that_does_not_fit_the_name_is_refused(
    library: Library, name: str, content: bytes, status: int
) -> None:
    library.add("a.md", ADA)
    before = held(library)
    with pytest.raises(HTTPException) as caught:
        library.add(name, content)
    assert caught.value.status_code == status
    assert held(library) == before  # Also where it would replace it.


def test_only_what_is_in_the_index_is_shown_or_removed(library: Library, tmp_path: Path) -> None:
    library.add("ada.md", ADA)
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    beside = tmp_path / "uploads" / ".." / "secret.md"
    for path in (str(secret), str(beside), "/etc/passwd", ""):
        with pytest.raises(HTTPException, match="not in the index"):
            library.show(path)
        with pytest.raises(HTTPException, match="not in the index"):
            library.remove(path)
    assert secret.exists()
    library.add("mill.pdf", pdf())
    mill = tmp_path / "uploads" / "mill.pdf"
    mill.unlink()
    with pytest.raises(HTTPException, match="no longer there"):
        library.picture(str(mill), 1, [])
    mill.symlink_to(secret)
    with pytest.raises(HTTPException, match="leads out"):
        library.picture(str(mill), 1, [])


def test_a_source_of_several_chunks_is_shown_once_with_its_lines(library: Library) -> None:
    rows = "".join(f"| row {number} | {'x' * 40} |\n" for number in range(60))
    text = f"# Rows\n\n| a | b |\n| --- | --- |\n{rows}"
    library.add("rows.md", text.encode())
    shown = library.show("rows.md")
    assert library.index.count() > 1
    told = dict(zip(shown["text"].split("\n"), shown["lines"], strict=True))
    assert shown["text"].count("| a | b |") == 1  # The head that each chunk repeats.
    assert [told[line] for line in rows.splitlines()] == list(range(5, 65))


def test_of_two_uploads_at_once_file_and_index_are_of_one(library: Library) -> None:
    texts = [f"<h1>Ada</h1><p>Ada wrote number {number}." for number in range(4)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda text: library.add("ada.html", text.encode()), texts))
    files, text = held(library)
    assert files == ["ada.html"]
    assert (library.uploads / "ada.html").read_text() in texts
    assert (library.uploads / "ada.html").read_text().endswith(text.rpartition("Ada")[2])
    assert library.index.count() == 1


def test_pages_of_a_pdf_are_drawn_over_http(client: httpx.Client) -> None:
    note = client.put("/api/documents/ada.md", content=ADA).json()["path"]
    path = client.put("/api/documents/mill.pdf", content=pdf()).json()["path"]
    asked = {"source": path, "page": "1", "mark": PARAGRAPHS[0]}
    drawn = client.get("/api/documents/picture", params=asked)
    assert (drawn.headers["content-type"], drawn.content[:4]) == ("image/png", b"\x89PNG")
    assert 0 < float(drawn.headers["x-marked-at"]) < 1
    for wrong, status, said in (
        ({"page": "9"}, 422, "mill.pdf: page 9 of 1 does not exist"),
        ({"page": "-1"}, 400, "page: allowed are whole numbers from 1"),
        ({"page": "9" * 5000}, 400, "page: allowed are whole numbers from 1"),
        ({"source": note}, 415, "ada.md is no PDF"),
        ({"source": "/etc/passwd"}, 404, "/etc/passwd is not in the index"),
    ):
        refused = client.get("/api/documents/picture", params=asked | wrong)
        assert refused.status_code == status
        assert said in refused.json()["message"]


def test_another_machine_has_the_documents_with_the_token_alone(tmp_path: Path) -> None:
    """As with `docker compose up page`, where each request comes from the bridge."""
    environment, bridge = Environment(index=str(tmp_path / "index")), ("172.17.0.1", 9)
    known = ServeSettings(token=SecretStr("a-token-of-the-tests"))
    app = create(environment, known, graphs())
    with TestClient(app, "http://localhost:2024", client=bridge) as outside:
        assert outside.put("/api/documents/ada.md", content=ADA).status_code == 401
        outside.headers["x-api-key"] = "a-token-of-the-tests"
        path = outside.put("/api/documents/ada.md", content=ADA).json()["path"]
        for route in ("/api/documents/source", "/v1/models", "/api/threads"):
            assert outside.get(route, params={"source": path}).status_code == 200
        assert outside.delete("/api/documents", params={"path": path}).json() == {}
    app = create(environment, ServeSettings(), graphs())
    with TestClient(app, "http://localhost:2024", client=bridge) as outside:
        assert outside.get("/api/documents").status_code == 403


def chunk(section: str, source: str = "/d/a.md") -> dict[str, str]:
    return {"source": source, "section": section}


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("Guide > How do I install it?", "How do I install it?"),
        ("What is a `strip`", "What is a strip?"),
        ("How to brew green tea", "How to brew green tea?"),
        ("Chunks and their places", None),
    ],
)
def test_a_heading_that_asks_becomes_a_question(heading: str, question: str | None) -> None:
    assert examples([chunk(heading), {"source": "/d/b.md"}]) == [question] * bool(question)
