"""The application of `crag serve` on a port of this machine, for graphs of a test's own."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import SecretStr

from crag.runtime.environment import Environment
from crag.serve.app import create
from crag.serve.settings import ServeSettings

KEYS = {"ada": "key-of-ada-lovelace", "bob": "key-of-bob-the-builder"}
USERS = SecretStr(",".join(f"{name}={key}" for name, key in KEYS.items()))


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(graphs: Mapping[str, Any], folder: Path, **settings: Any) -> Iterator[str]:
    """Serve graphs, with an index and conversations in `folder`; yield the address.

    `settings` are those of `ServeSettings`; without a token, as by ``crag serve --no-token``.
    """
    app = create(Environment(index=str(folder / "index")), ServeSettings(**settings), graphs)
    config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
