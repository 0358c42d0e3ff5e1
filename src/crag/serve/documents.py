"""The documents of the index, for the page: list, add, remove, and show a source.

Only files that are in the index are shown, and only uploaded ones are deleted.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from langchain_core.documents import Document
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.documents.isolated import IsolatedReader, Limits
from crag.documents.loaders import LOADERS, supported
from crag.documents.sources import file_of, name_of
from crag.errors import ContentError, SourceError
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index import DocumentIndex, index_paths, open_index
from crag.index.update import replace_file
from crag.plain import real_path
from crag.runtime.environment import Environment
from crag.serve.settings import ServeSettings
from crag.text.encodings import storable
from crag.text.pdf_picture import Picture
from crag.text.places import line_places
from crag.text.words import without_markup

MOST_SHOWN = 2_000_000
"""Characters of a source that the page shows."""
MOST_EXAMPLES = 3
_MOST_MARKS, _LONGEST_NAME = 20, 200
_PAGED = {"page", "slide", "sheet", "cell", "part"}
"""What positions count where a source is shown in parts."""
_ASKS = re.compile(
    r"(?:how to|what (?:is|are)|who (?:is|are)|where|when|why) |.*\?$", re.IGNORECASE
)


class Library:
    """The index and the folder of what was uploaded to it."""

    def __init__(self, index: DocumentIndex, uploads: Path, limits: Limits) -> None:
        self.index, self.uploads, self._limits = index, uploads, limits
        # One file is read at a time, because processes for all of them would add up; who looks at
        # a document does not wait for uploads.
        self._showing, self._writing = Lock(), Lock()

    @classmethod
    def of(cls, environment: Environment, settings: ServeSettings) -> "Library":
        """Return the library of an environment."""
        index = open_index(environment.index, choose_encoder(environment))
        uploads = real_path(settings.uploads or f"{environment.beside}-uploads")
        return cls(index, uploads, choose_limits(environment))

    def files(self) -> list[dict[str, object]]:
        """Return the files in the index by path: title, chunks, and whether uploaded."""
        files = self.index.files()
        return [{**one, "uploaded": Path(one["path"]).parent == self.uploads} for one in files]

    def add(self, name: str, content: bytes) -> dict[str, Any]:
        """Read an uploaded file, then save and index it; a file of the same name is replaced.

        Where it cannot be read or written, nothing changes: neither file nor index.

        Raises:
            HTTPException: the name or the content is refused, or nothing could be indexed.
            DocumentIndexError: the index cannot be written.
        """
        _check_name(name)
        self.uploads.mkdir(parents=True, exist_ok=True)
        # Where no run of `crag index` looks.
        staging = TemporaryDirectory(
            dir=self.uploads, prefix=".upload-", ignore_cleanup_errors=True
        )
        with staging as folder, self._writing:
            staged, file = Path(folder) / name, self.uploads / name
            staged.write_bytes(content)
            try:
                report = replace_file(staged, file, self.index, self._limits)
            except SourceError as error:
                raise HTTPException(422, str(error)) from error
        return {"path": str(file), "chunks": report.chunks}

    def remove(self, path: str) -> None:
        """Remove a file from the index, and delete it if it was uploaded."""
        with self._writing:
            uploaded = {one["path"]: one["uploaded"] for one in self.files()}
            if path not in uploaded:
                raise HTTPException(404, f"{path} is not in the index")
            index_paths([Path(path)], self.index, remove=True)
            if uploaded[path]:
                Path(path).unlink(missing_ok=True)

    def show(self, source: str) -> dict[str, Any]:
        """Return the text of a source as the index has it, with what its positions count."""
        chunks = self._chunks(source)
        known, texts, places = chunks[0].metadata, list[str](), list[int]()
        for chunk in chunks:
            again = chunk.metadata.get("repeats", 0)
            first = [place for place, _ in line_places(chunk.metadata.get("lines", ""))]
            texts += [""] * bool(texts) + chunk.page_content.split("\n")[again:]
            places += places[-1:] + first[again:]
        text, unit = "\n".join(texts), known["position"].partition(" ")[0]
        if len(text) > MOST_SHOWN:
            raise HTTPException(413, f"it has more than {MOST_SHOWN:,} characters: use an editor")
        pages, at = list[int](), 0  # Where each page, slide, … begins.
        for line, place in zip(texts, places, strict=True) if unit in _PAGED else ():
            pages += [at] * (place - len(pages))
            at += len(line) + 1
        shown = {"source": known["source"], "title": known["title"], "unit": unit}
        return {**shown, "pages": pages, "lines": places, "text": text}

    def picture(self, source: str, page: int, quotations: Sequence[str]) -> Picture:
        """Return a page of a PDF of the index as it looks, with quotations marked."""
        known = self._chunks(source)[0].metadata
        file = Path(file_of(known["source"], known["position"]))
        if file.suffix.lower() != ".pdf":
            raise HTTPException(415, f"{file.name} is no PDF: only pages of PDFs are drawn")
        if not Path(os.path.realpath(file)).is_relative_to(known["root"]):
            raise HTTPException(403, f"{file} leads out of the folder that was indexed")
        if not file.is_file():
            raise HTTPException(410, f"{file} is no longer there; the index has its text")
        with self._showing, IsolatedReader(self._limits) as files:
            try:
                return files.picture(file, page, quotations)
            except ContentError as error:
                raise HTTPException(422, f"{file.name}: {error.problem}") from error

    def _chunks(self, source: str) -> list[Document]:
        """Return the chunks of a source, named by its path, or within the folder of the index."""
        by_source: defaultdict[str, list[Document]] = defaultdict(list)
        for one in self.index.stored(source):
            path = one.metadata["source"]
            if source in {path, name_of(path, one.metadata["root"])}:
                by_source[path].append(one)
        for chunks in by_source.values():
            return sorted(chunks, key=lambda one: one.metadata["chunk"])
        raise HTTPException(404, f"{source} is not in the index")


def _check_name(name: str) -> None:
    """Refuse a name that is no plain file name, or that tells no kind of file that can be read."""
    plain = name == Path(name).name and name.isprintable() and storable(name) == name
    if not plain or "\\" in name or name[:1] in {"", "."} or len(name.encode()) > _LONGEST_NAME:
        raise HTTPException(400, f"{name[:80]!r} is no name of a file: rename it")
    if Path(name).suffix.lower() not in LOADERS:
        raise HTTPException(415, f"{name}: {supported()}")


def examples(stored: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return questions of the headings that ask one, by the metadata of the chunks of an index."""
    headings = (str(one.get("section") or "").rpartition(" > ")[2] for one in stored)
    plain = (without_markup(heading).strip() for heading in headings)
    asking = {heading.rstrip("?") + "?" for heading in plain if _ASKS.match(heading)}
    return sorted(asking, key=lambda one: (len(one), one))[:MOST_EXAMPLES]


def listed(request: Request) -> Response:
    """Return the files of the index, and what the user may upload."""
    library, settings = request.app.state.library, request.app.state.settings
    edits = settings.may_edit(request.state.user)
    return JSONResponse({
        "files": library.files(),
        "examples": examples(chunk.metadata for chunk in library.index.stored()),
        "edits": edits,
        "accepted": sorted(LOADERS),
        "most_bytes": settings.max_bytes,
    })  # fmt: skip


async def changed(request: Request) -> Response:
    """Take an uploaded file, or remove the file that the query names as `path`."""
    library = request.app.state.library
    if not request.app.state.settings.may_edit(request.state.user):
        problem = "only those whom CRAG_SERVE_EDITORS names add and remove documents"
        raise HTTPException(403, problem)
    if request.method == "PUT":
        name, content = request.path_params["name"], await request.body()
        return JSONResponse(await run_in_threadpool(library.add, name, content))
    await run_in_threadpool(library.remove, request.query_params.get("path", ""))
    return JSONResponse({})


def shown(request: Request) -> Response:
    """Return the text of the source that the query names as `source`."""
    source = request.query_params.get("source", "")
    return JSONResponse(request.app.state.library.show(source))


def drawn(request: Request) -> Response:
    """Return a page, `page`, of the PDF that the query names as `source`; `mark` is a quotation."""
    asked = request.query_params
    if not re.fullmatch(r"\d{1,9}", asked.get("page", "")):
        raise HTTPException(400, "page: allowed are whole numbers from 1")
    marks = asked.getlist("mark")[:_MOST_MARKS]
    library, source = request.app.state.library, asked.get("source", "")
    png, marked = library.picture(source, int(asked["page"]), marks)
    return Response(png, media_type="image/png", headers={"X-Marked-At": f"{marked:.3f}"})


ROUTES = [
    Route("/api/documents", listed),
    Route("/api/documents", changed, methods=["DELETE"]),
    Route("/api/documents/source", shown),
    Route("/api/documents/picture", drawn),
    Route("/api/documents/{name}", changed, methods=["PUT"]),
]
