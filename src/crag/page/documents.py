"""The documents of the index, for the page: list, add, remove, and show a source.

Only files that are in the index are shown, and only uploaded ones are deleted. The guard says who
may ask these routes.
"""

import asyncio
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.documents.isolated import IsolatedReader
from crag.documents.loaders import LOADERS, supported
from crag.documents.sources import Loaded, SourceText, file_of, name_of
from crag.errors import ContentError, CragError, DocumentIndexError, SourceError
from crag.factory.indexing import choose_encoder, choose_limits
from crag.index import DocumentIndex, IndexReport, Limits, index_paths
from crag.index.contract import Filter
from crag.index.replacement import prepared, replace_file
from crag.page.first_visit import examples
from crag.page.rules import Rules
from crag.runtime.environment import Environment
from crag.runtime.memory import give_back_memory
from crag.text.blocks import lines_of_all
from crag.text.encodings import storable
from crag.text.pdf_picture import Picture

MOST_SHOWN = 2_000_000
"""Characters of a source that the page shows."""
_MOST_MARKS = 20
_LONGEST_NAME = 200
_NOT_KEPT = {"Cache-Control": "no-store"}
_ZIPPED = {".docx", ".pptx", ".xlsx", ".xlsm", ".ods", ".epub"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class DocumentError(CragError):
    """A document cannot be added, removed or shown; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


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

    def _is_upload(self, path: str) -> bool:
        return self.uploads is not None and Path(path).parent == self.uploads

    async def add(self, name: str, content: bytes) -> dict[str, Any]:
        """Read an uploaded file, then save and index it; a file of the same name is replaced.

        Where it cannot be read or written, nothing changes: neither file nor index.

        Raises:
            DocumentError: the name or the content is refused, or nothing could be indexed.
            DocumentIndexError: the index cannot be written.
        """
        uploads = self.uploads
        if uploads is None:
            raise DocumentError(
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
            raise DocumentError(422, str(error)) from error
        finally:
            self.progress = None
            await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)
        return {"path": str(file), "chunks": report.chunks, "warning": report.language_warning}

    async def remove(self, path: str) -> None:
        """Remove a file from the index, and delete it if it was uploaded.

        Raises:
            DocumentError: it is not in the index.
            DocumentIndexError: the index cannot be written.
        """
        async with self._writing:
            if path not in {file["path"] for file in await run_in_threadpool(self.files)}:
                raise DocumentError(404, f"{path} is not in the index")
            file = Path(path)
            self._tell(file, 0, None, path)
            try:
                await run_in_threadpool(partial(index_paths, [file], self.index, remove=True))
                if self._is_upload(path):
                    await run_in_threadpool(file.unlink, missing_ok=True)
            finally:
                self.progress = None

    def _tell(self, file: Path, done: int, total: int | None, source: str) -> None:
        self.progress = {"file": file.name, "done": done, "total": total, "source": source}

    async def show(self, source: str) -> dict[str, Any]:
        """Return the text of a source as it was indexed, with what its positions count.

        Raises:
            DocumentError: it is not in the index, has gone, or is too long.
        """
        known, file = await run_in_threadpool(self._known, source)
        async with self._showing:
            loaded = await run_in_threadpool(self._loaded, file, known["source"])
        if not isinstance(loaded, SourceText):
            raise DocumentError(410, f"{file.name} can no longer be read")
        if len(loaded.text) > MOST_SHOWN:
            longest = f"{MOST_SHOWN:,} characters"
            raise DocumentError(413, f"{file} has more than {longest}: open it in an editor")
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
            DocumentError: it is not in the index, has gone, is no PDF, or has no such page.
        """
        _, file = await run_in_threadpool(self._known, source)
        if file.suffix.lower() != ".pdf":
            raise DocumentError(415, f"{file.name} is no PDF: only pages of PDFs are drawn")
        async with self._showing:
            return await run_in_threadpool(self._drawn, file, page, quotations)

    def _drawn(self, file: Path, page: int, quotations: Sequence[str]) -> Picture:
        with IsolatedReader(self._limits) as files:
            try:
                return files.picture(file, page, quotations)
            except ContentError as error:
                raise DocumentError(422, f"{file.name}: {error.problem}") from error

    def _known(self, source: str) -> tuple[Mapping[str, Any], Path]:
        """Find a source by its path, or by its name within the folder that was indexed."""
        stored = [one.metadata for one in self.index.stored(Filter(folder=source))]
        known = next((one for one in stored if one["source"] == source), None) or next(
            (one for one in stored if name_of(one["source"], one.get("root", "")) == source), None
        )
        if known is None:
            raise DocumentError(404, f"{source} is not in the index")
        file = Path(file_of(known["source"], known["position"]))
        if not Path(os.path.realpath(file)).is_relative_to(known["root"]):
            raise DocumentError(403, f"{file} leads out of the folder that was indexed")
        if not file.is_file():
            raise DocumentError(410, f"{file} is no longer there; the index has its text")
        if file.suffix.lower() not in LOADERS:
            problem = "is read by a loader of `crag index --loader`, which the page does not have"
            raise DocumentError(415, f"{file} {problem}; the index has its text")
        return known, file

    def _loaded(self, file: Path, source: str) -> Loaded | None:
        with IsolatedReader(self._limits) as files:
            return next((one for one in files.read(file) if one.source == source), None)


def check_upload(name: str, content: bytes) -> None:
    """Refuse a name that is no plain file name, and content that is not of the name's type.

    Raises:
        DocumentError: it is refused; the message says why.
    """
    plain = bool(name) and name == Path(name).name and not set(name) & {"/", "\\", "\0"}
    printable = name.isprintable() and storable(name) == name
    if not (plain and printable) or name.startswith(".") or len(name.encode()) > _LONGEST_NAME:
        raise DocumentError(400, f"{name[:80]!r} is no name of a file: rename it")
    suffix = Path(name).suffix.lower()
    if suffix not in LOADERS:
        raise DocumentError(415, f"{name}: {supported()}")
    if not content.strip():
        raise DocumentError(422, f"{name} is empty")
    if suffix == ".pdf":
        fits = b"%PDF-" in content[:1024]
    elif suffix in _ZIPPED:
        fits = content.startswith(b"PK\x03\x04")
    else:
        fits = suffix == ".xls" or b"\0" not in content or content.startswith(_UTF_16)
    if not fits:
        raise DocumentError(415, f"{name} is not what its name says: no {suffix} file")


def _staging_folder(uploads: Path) -> Path:
    """Make a folder for one upload, where no run of `crag index` looks."""
    uploads.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=uploads, prefix=".upload-"))


@cache
def library() -> Library:
    """Return the library of the environment.

    Raises:
        CragError: a part cannot be used.
    """
    environment, rules = Environment(), Rules()
    index = DocumentIndex(environment.index, choose_encoder(environment))
    uploads = rules.uploads
    if uploads is None and "://" not in environment.index:
        uploads = Path(f"{environment.index}-uploads")
    uploads = uploads and uploads.expanduser().resolve()
    return Library(index, uploads, choose_limits(environment))


async def listed(known: Library, request: Request) -> Any:
    """Return the files of the index, and what the user may upload."""
    rules = Rules()
    files, questions = await run_in_threadpool(lambda: (known.files(), known.examples()))
    return {
        "files": files,
        "examples": questions,
        "uploads": known.uploads is not None and rules.may_edit(request.state.user),
        "edits": rules.may_edit(request.state.user),
        "accepted": sorted(LOADERS),
        "most_bytes": rules.max_bytes,
    }


async def progress(known: Library, _: Request) -> Any:
    """Return what is being indexed now, or null."""
    return known.progress


async def added(known: Library, request: Request) -> Any:
    """Take an uploaded file."""
    return await known.add(request.path_params["name"], await request.body())


async def removed(known: Library, request: Request) -> Any:
    """Remove the file that the query names as `path`."""
    await known.remove(request.query_params.get("path", ""))
    return {}


async def shown(known: Library, request: Request) -> Any:
    """Return the text of the source that the query names as `source`."""
    return await known.show(request.query_params.get("source", ""))


async def drawn(known: Library, request: Request) -> Response:
    """Return a page, `page`, of the PDF that the query names as `source`; `mark` is a quotation."""
    asked = request.query_params
    if not (asked.get("page") or "").isdecimal():
        raise DocumentError(400, "page: allowed are whole numbers from 1")
    png, marked = await known.picture(
        asked.get("source", ""), int(asked["page"]), asked.getlist("mark")[:_MOST_MARKS]
    )
    headers = _NOT_KEPT | {"X-Marked-At": f"{marked:.3f}"}
    return Response(png, media_type="image/png", headers=headers)


def _answering(handler: Callable[[Library, Request], Any]) -> Callable[[Request], Any]:
    """Answer as JSON, and errors in the format of LangGraph's own."""

    async def answer(request: Request) -> Response:
        response = await _answered(request)
        if request.method in {"PUT", "DELETE"}:  # They hold a document, and much of the index.
            response.background = BackgroundTask(give_back_memory)
        return response

    async def _answered(request: Request) -> Response:
        try:
            found = await handler(await run_in_threadpool(library), request)
            return found if isinstance(found, Response) else JSONResponse(found, headers=_NOT_KEPT)
        except DocumentError as error:
            return JSONResponse({"detail": str(error)}, error.status)
        except DocumentIndexError as error:
            return JSONResponse({"detail": str(error)}, 409)
        except (CragError, OSError) as error:
            return JSONResponse({"detail": str(error)}, 500)

    return answer


ROUTES = [
    Route("/documents", _answering(listed)),
    Route("/documents", _answering(removed), methods=["DELETE"]),
    Route("/documents/progress", _answering(progress)),
    Route("/documents/source", _answering(shown)),
    Route("/documents/picture", _answering(drawn)),
    Route("/documents/{name}", _answering(added), methods=["PUT"]),
]


def _starts_of_pages(document: SourceText) -> list[int]:
    """Return where each page, slide, … begins in the text of a document that is read by them."""
    if document.unit not in {"page", "slide", "sheet", "cell", "chapter"}:
        return []
    starts, at = [0], 0
    for line in lines_of_all(document.blocks):
        starts += [at] * (line.first - len(starts))
        at += len(line.text) + 1
    return starts
