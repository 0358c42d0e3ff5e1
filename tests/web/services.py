"""What the tests of all search services share."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from crag.text.urls import distinct


async def search(made: WebSearcher, query: str = "ada", limit: int = 5) -> list[Hit]:
    """Search; what the graph would not use is left out."""
    found = await made.asearch(query, limit)
    assert len(found) <= limit
    return distinct(found)


async def failing(made: WebSearcher, query: str = "ada") -> SearchError:
    """Return the error that the search raises."""
    with pytest.raises(SearchError) as caught:
        await search(made, query)
    return caught.value


CUT_OFF = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"results'
)


@contextmanager
def dripping(parts: Sequence[bytes], seconds: float = 0.0) -> Iterator[str]:
    """Answer each connection with parts of a reply, `seconds` apart, and close; yield the URL."""
    stopping = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    for part in parts:
                        connection.sendall(part)
                        stopping.wait(seconds)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stopping.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
