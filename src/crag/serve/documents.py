"""The documents of the index, for the page: list, add, remove, and show a source.

Only files that are in the index are shown, and only uploaded ones are deleted.
"""

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.documents.isolated import IsolatedReader
from crag.documents.loaders import LOADERS, supported
from crag.documents.sources import Loaded, SourceText, file_of, name_of
from crag.errors import ContentError, SourceError
from crag.factory.embeddings import choose_encoder, choose_limits
from crag.index import DocumentIndex, IndexReport, Limits, index_paths
from crag.index.contract import Filter
from crag.index.replacement import prepared, replace_file
from crag.runtime.environment import Environment
from crag.runtime.memory import give_back_memory
from crag.serve.first_visit import examples
from crag.serve.settings import ServeSettings
from crag.text.blocks import lines_of_all
from crag.text.encodings import storable
from crag.text.pdf_picture import Picture

MOST_SHOWN = 2_000_000
"""Characters of a source that the page shows."""
_MOST_MARKS = 20
_LONGEST_NAME = 200
_ZIPPED = {".docx", ".pptx", ".xlsx", ".xlsm", ".ods", ".epub"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Library:
    """The index and the folder of what was uploaded to it."""

    def __init__(
        self, index: DocumentIndex, uploads: Path | None, limits: Limits | None = None
    ) -> None:
        self.index, self.uploads = index, uploads
        self.progress: dict[str, Any] | None = None
        self._limits = limits or Limits()
        # One upload is read at a time, because processes for all of them would add up. The others
        # wait without a thread; who removes or looks at a document does not wait for them.
        self._reading, self._showing, self._writing = (asyncio.Lock() for _ in range(3))

    @classmethod
    def of(cls, environment: Environment, settings: ServeSettings) -> "Library":
        """Return the library of an environment; without a folder for uploads, beside the index."""
        uploads = settings.uploads
        if uploads is None and "://" not in environment.index:
            uploads = Path(f"{environment.index}-uploads")
        index = DocumentIndex(environment.index, choose_encoder(environment))
        uploads = uploads and uploads.expanduser().resolve()
        return cls(index, uploads, choose_limits(environment))

    def files(self) -> list[dict[str, Any]]:
        """Return the files in the index by path: title, chunks, day, and whether uploaded.

        Files of one name, in several folders, are called by their paths.
        """
        files = self.index.files()
        count = Counter(file["name"] for file in files)
        return [
            {
                **file,
                "name": file["name"] if count[file["name"]] == 1 else file["path"],
                "uploaded": self._is_upload(file["path"]),
            }
            for file in files
        ]

    def examples(self) -> list[str]:
        """Return questions to begin with, made from headings of the index."""
        return examples(chunk.metadata for chunk in self.index.stored())

    async def add(self, name: str, content: bytes) -> dict[str, Any]:
        """Read an uploaded file, then save and index it; a file of the same name is replaced.

        Where it cannot be read or written, nothing changes: neither file nor index.

        Raises:
            HTTPException: the name or the content is refused, or nothing could be indexed.
            DocumentIndexError: the index cannot be written.
        """
        uploads = self.uploads
        if uploads is None:
            raise HTTPException(
                409, "the index is on a server: name a folder for uploads in CRAG_SERVE_UPLOADS"
            )
        check_upload(name, content)
        file = uploads / name
        folder = await run_in_threadpool(_staging_folder, uploads)
        try:
            staged = folder / name
            await run_in_threadpool(staged.write_bytes, content)
            async with self._reading:
                progress = partial(self._tell, file)
                progress(0, None, str(file))
                documents = await run_in_threadpool(
                    prepared, staged, file, self.index, self._limits, progress
                )
            async with self._writing:
                report: IndexReport = await run_in_threadpool(
                    replace_file, staged, file, documents, self.index
                )
        except SourceError as error:
            raise HTTPException(422, str(error)) from error
        finally:
            self.progress = None
            await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)
        return {"path": str(file), "chunks": report.chunks, "warning": report.language_warning}

    async def remove(self, path: str) -> None:
        """Remove a file from the index, and delete it if it was uploaded.

        Raises:
            HTTPException: it is not in the index.
            DocumentIndexError: the index cannot be written.
        """
        async with self._writing:
            if path not in {file["path"] for file in await run_in_threadpool(self.files)}:
                raise HTTPException(404, f"{path} is not in the index")
            file = Path(path)
            self._tell(file, 0, None, path)
            try:
                await run_in_threadpool(partial(index_paths, [file], self.index, remove=True))
                if self._is_upload(path):
                    await run_in_threadpool(file.unlink, missing_ok=True)
            finally:
                self.progress = None

    async def show(self, source: str) -> dict[str, Any]:
        """Return the text of a source as it was indexed, with what its positions count.

        Raises:
            HTTPException: it is not in the index, has gone, or is too long.
        """
        known, file = await run_in_threadpool(self._known, source)
        async with self._showing:
            loaded = await run_in_threadpool(self._loaded, file, known["source"])
        if not isinstance(loaded, SourceText):
            raise HTTPException(410, f"{file.name} can no longer be read")
        if len(loaded.text) > MOST_SHOWN:
            longest = f"{MOST_SHOWN:,} characters"
            raise HTTPException(413, f"{file} has more than {longest}: open it in an editor")
        return {
            "source": known["source"],
            "title": loaded.title,
            "unit": loaded.unit,
            "pages": _starts_of_pages(loaded),
            "lines": [line.first for line in lines_of_all(loaded.blocks)],
            "text": loaded.text,
            "changed": loaded.content_hash != known["content_hash"],
        }

    async def picture(self, source: str, page: int, quotations: Sequence[str]) -> Picture:
        """Return a page of a PDF of the index as it looks, with quotations marked.

        Raises:
            HTTPException: it is not in the index, has gone, is no PDF, or has no such page.
        """
        _, file = await run_in_threadpool(self._known, source)
        if file.suffix.lower() != ".pdf":
            raise HTTPException(415, f"{file.name} is no PDF: only pages of PDFs are drawn")
        async with self._showing:
            return await run_in_threadpool(self._drawn, file, page, quotations)

    def _tell(self, file: Path, done: int, total: int | None, source: str) -> None:
        self.progress = {"file": file.name, "done": done, "total": total, "source": source}

    def _is_upload(self, path: str) -> bool:
        return self.uploads is not None and Path(path).parent == self.uploads

    def _drawn(self, file: Path, page: int, quotations: Sequence[str]) -> Picture:
        with IsolatedReader(self._limits) as files:
            try:
                return files.picture(file, page, quotations)
            except ContentError as error:
                raise HTTPException(422, f"{file.name}: {error.problem}") from error

    def _known(self, source: str) -> tuple[Mapping[str, Any], Path]:
        """Find a source by its path, or by its name within the folder that was indexed."""
        stored = [one.metadata for one in self.index.stored(Filter(folder=source))]
        known = next((one for one in stored if one["source"] == source), None) or next(
            (one for one in stored if name_of(one["source"], one.get("root", "")) == source), None
        )
        if known is None:
            raise HTTPException(404, f"{source} is not in the index")
        file = Path(file_of(known["source"], known["position"]))
        if not Path(os.path.realpath(file)).is_relative_to(known["root"]):
            raise HTTPException(403, f"{file} leads out of the folder that was indexed")
        if not file.is_file():
            raise HTTPException(410, f"{file} is no longer there; the index has its text")
        if file.suffix.lower() not in LOADERS:
            problem = "is read by a loader of `crag index --loader`, which the page does not have"
            raise HTTPException(415, f"{file} {problem}; the index has its text")
        return known, file

    def _loaded(self, file: Path, source: str) -> Loaded | None:
        with IsolatedReader(self._limits) as files:
            return next((one for one in files.read(file) if one.source == source), None)


def check_upload(name: str, content: bytes) -> None:
    """Refuse a name that is no plain file name, and content that is not of the name's type.

    Raises:
        HTTPException: it is refused; the message says why.
    """
    plain = bool(name) and name == Path(name).name and not set(name) & {"/", "\\", "\0"}
    printable = name.isprintable() and storable(name) == name
    if not (plain and printable) or name.startswith(".") or len(name.encode()) > _LONGEST_NAME:
        raise HTTPException(400, f"{name[:80]!r} is no name of a file: rename it")
    suffix = Path(name).suffix.lower()
    if suffix not in LOADERS:
        raise HTTPException(415, f"{name}: {supported()}")
    if not content.strip():
        raise HTTPException(422, f"{name} is empty")
    if suffix == ".pdf":
        fits = b"%PDF-" in content[:1024]
    elif suffix in _ZIPPED:
        fits = content.startswith(b"PK\x03\x04")
    else:
        fits = suffix == ".xls" or b"\0" not in content or content.startswith(_UTF_16)
    if not fits:
        raise HTTPException(415, f"{name} is not what its name says: no {suffix} file")


def _staging_folder(uploads: Path) -> Path:
    """Make a folder for one upload, where no run of `crag index` looks."""
    uploads.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=uploads, prefix=".upload-"))


def _starts_of_pages(document: SourceText) -> list[int]:
    """Return where each page, slide, … begins in the text of a document that is read by them."""
    if document.unit not in {"page", "slide", "sheet", "cell", "chapter"}:
        return []
    starts, at = [0], 0
    for line in lines_of_all(document.blocks):
        starts += [at] * (line.first - len(starts))
        at += len(line.text) + 1
    return starts


async def listed(request: Request) -> Response:
    """Return the files of the index, and what the user may upload."""
    library, settings = _library(request), request.app.state.settings
    files, questions = await run_in_threadpool(lambda: (library.files(), library.examples()))
    edits = settings.may_edit(request.state.user)
    return JSONResponse({
        "files": files,
        "examples": questions,
        "uploads": library.uploads is not None and edits,
        "edits": edits,
        "accepted": sorted(LOADERS),
        "most_bytes": settings.max_bytes,
    })  # fmt: skip


async def progress(request: Request) -> Response:
    """Return what is being indexed now, or null."""
    return JSONResponse(_library(request).progress)


async def added(request: Request) -> Response:
    """Take an uploaded file."""
    name, content = request.path_params["name"], await request.body()
    report = await _edited(request).add(name, content)
    # Reading takes a document's memory, and much of the index's.
    return JSONResponse(report, background=BackgroundTask(give_back_memory))


async def removed(request: Request) -> Response:
    """Remove the file that the query names as `path`."""
    await _edited(request).remove(request.query_params.get("path", ""))
    return JSONResponse({}, background=BackgroundTask(give_back_memory))


async def shown(request: Request) -> Response:
    """Return the text of the source that the query names as `source`."""
    return JSONResponse(await _library(request).show(request.query_params.get("source", "")))


async def drawn(request: Request) -> Response:
    """Return a page, `page`, of the PDF that the query names as `source`; `mark` is a quotation."""
    asked = request.query_params
    if not (asked.get("page") or "").isdecimal():
        raise HTTPException(400, "page: allowed are whole numbers from 1")
    png, marked = await _library(request).picture(
        asked.get("source", ""), int(asked["page"]), asked.getlist("mark")[:_MOST_MARKS]
    )
    return Response(png, media_type="image/png", headers={"X-Marked-At": f"{marked:.3f}"})


def _library(request: Request) -> Library:
    library: Library = request.app.state.library
    return library


def _edited(request: Request) -> Library:
    """Return the library to who may change it."""
    if not request.app.state.settings.may_edit(request.state.user):
        raise HTTPException(
            403, "only those whom CRAG_SERVE_EDITORS names add and remove documents"
        )
    return _library(request)


ROUTES = [
    Route("/api/documents", listed),
    Route("/api/documents", removed, methods=["DELETE"]),
    Route("/api/documents/progress", progress),
    Route("/api/documents/source", shown),
    Route("/api/documents/picture", drawn),
    Route("/api/documents/{name}", added, methods=["PUT"]),
]
