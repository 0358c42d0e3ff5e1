"""Open a Chroma database safely, and translate its errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, urlsplit

from crag.errors import CragError, DocumentIndexError
from crag.index.contract import safe_location, sentence_of

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client

COLLECTION = "crag"
DATABASE = "chroma.sqlite3"
_SQLITE = b"SQLite format 3\0"


def is_server(location: str) -> bool:
    """Return whether `location` is the URL of a Chroma server rather than a folder."""
    return location.startswith(("http://", "https://"))


def open_client(location: str) -> "Client":
    """Connect to the server at `location`, or open the folder and create it if missing.

    Raises:
        DocumentIndexError: the server does not answer, or the folder contains something else.
    """
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    with index_errors(location):
        if not is_server(location):
            return cast("Client", chromadb.PersistentClient(location, settings=settings))
        url = _server_url(location)
        tls = url.scheme == "https"
        port = url.port or (443 if tls else 80)
        client = chromadb.HttpClient(str(url.hostname), port, ssl=tls, settings=settings)
        return cast("Client", client)


def close_client(client: "Client") -> None:
    """Close a client, and its connections to a server, which Chroma leaves open."""
    parts: tuple[Any, ...] = (client, client._admin_client)  # noqa: SLF001
    sessions = [getattr(part._server, "_session", None) for part in parts]  # noqa: SLF001
    client.close()
    for session in sessions:
        if session is not None:
            session.close()


def has_database(folder: Path) -> bool:
    """Return whether a folder holds a Chroma database, without changing anything.

    Raises:
        DocumentIndexError: it is a file, or the database is invalid.
    """
    if folder.exists() and not folder.is_dir():
        raise DocumentIndexError(str(folder), "this is a file; an index is a folder")
    database = folder / DATABASE
    if not database.is_file():
        return False
    try:
        with database.open("rb") as file:
            start = file.read(len(_SQLITE))
    except OSError as error:
        raise DocumentIndexError(str(folder), f"cannot be read: {error.strerror}") from error
    if start != _SQLITE:
        raise DocumentIndexError(str(folder), f"{DATABASE} is damaged. {REBUILD}")
    return True


def find_collection(client: "Client", location: str) -> "Collection | None":
    """Return the collection of chunks, if there is one."""
    from chromadb.errors import NotFoundError

    with index_errors(location):
        try:
            return client.get_collection(COLLECTION, embedding_function=None)
        except NotFoundError:
            return None


REBUILD = "Delete the folder and index again"
_FULL = re.compile("disk I/O|is full|No space|too large", re.IGNORECASE)
_READ_ONLY = re.compile("readonly|read-only", re.IGNORECASE)


@contextmanager
def index_errors(location: str) -> Iterator[None]:
    """Translate the exceptions of Chroma and its HTTP client."""
    import httpx
    from chromadb.errors import ChromaError

    try:
        yield
    except CragError:
        raise
    except (ChromaError, httpx.HTTPError, ValueError, OSError) as error:
        if is_server(location):
            advice = "Is the Chroma server running, and is this its URL?"
        elif _READ_ONLY.search(str(error)):
            problem = "nothing may be written there, but Chroma must, also to read. Allow it, or "
            raise DocumentIndexError(location, f"{problem}use a copy of the folder") from error
        elif _FULL.search(str(error)):
            advice = "Is the disk full? The index itself is whole."
        else:
            advice = f"Is it an index? If it is damaged: {REBUILD.lower()}"
        raise DocumentIndexError(location, f"{sentence_of(error)} {advice}") from error


def _server_url(location: str) -> SplitResult:
    url = urlsplit(location)
    if not url.hostname or url.username or url.path.strip("/") or url.query:
        problem = "the URL of a Chroma server is http(s)://HOST:PORT and nothing else"
        raise DocumentIndexError(safe_location(location), problem)
    return url
