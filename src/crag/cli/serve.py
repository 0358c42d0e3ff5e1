"""`crag serve`: the page, the graphs' API and Studio's server, on one port of this machine.

The server is LangGraph's own, started as a process of its own, because what it keeps goes where it
runs: into a temporary folder, not into the folder that `crag serve` was called in.
"""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from crag.cli.choose import environment
from crag.errors import CragError
from crag.factory import choose_parts
from crag.runtime.environment import Environment

GRAPHS: Mapping[str, str] = {
    "crag": "Corrective RAG: grades what was retrieved, refines or searches the web, answers with "
    "citations.",
    "self_crag": "Self-CRAG: corrected knowledge goes to a model that critiques what it reads and "
    "writes.",
    "self_rag": "Self-RAG: the model decides whether to retrieve, and critiques passages, claims "
    "and answer.",
    "rag": "Plain retrieval without correction, to compare with.",
}
"""What is served, as `langgraph.json` has it for those who work in the repository."""

STUDIO = "https://smith.langchain.com"
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server that listens everywhere is found
_LOOPBACK = ("127.0.0.1", "localhost")
_START_SECONDS, _STOP_SECONDS = 120.0, 5.0
_TOLD_LINES = 12


class ServerError(CragError):
    """The server cannot be started; the message says what to change."""


class Address(NamedTuple):
    """Where the server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        host = _ANY.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def run(location: str | None, host: str, port: int, *, opens: bool, verbose: bool) -> None:
    """Serve until somebody presses Ctrl-C.

    Raises:
        CragError: the index is missing, LangGraph's server is not installed, or the port is taken.
    """
    address = Address(host, port)
    require_server()
    chosen = environment(location)
    choose_parts(chosen, index_must_exist=True)
    require_port(address)
    with tempfile.TemporaryDirectory(prefix="crag-serve-") as folder, _ending_on_signals():
        home = Path(folder)
        (home / "langgraph.json").write_text(json.dumps(configuration()), "utf-8")
        _tell("Starting LangGraph's server")
        with _server(address, home, _variables(chosen, address), verbose=verbose) as server:
            _wait_until_ready(server, address, home)
            _announce(address, opens=opens)
            if server.wait() != 0:
                _give_up(server, home)


def configuration() -> dict[str, Any]:
    """Return the `langgraph.json` of this package, by module names, for wherever it is installed.

    Other web sites that a browser has open cannot read the documents through the API; Studio can.
    """
    graphs = {
        name: {"path": f"crag.graph.studio:{name}", "description": description}
        for name, description in GRAPHS.items()
    }
    cors = {"allow_origins": [STUDIO], "allow_methods": ["*"], "allow_headers": ["*"]}
    http = {"app": "crag.page.app:app", "cors": cors}
    return {"dependencies": ["."], "graphs": graphs, "http": http}


def require_server(package: str = "langgraph_cli") -> None:
    """Refuse to start without LangGraph's server.

    Raises:
        ServerError: it is not installed; the message names the command that installs it.
    """
    if find_spec(package) is None or find_spec("langgraph_api") is None:
        message = "crag serve needs LangGraph's server. Run: pip install 'corrective-rag[studio]'"
        raise ServerError(message)


def require_port(address: Address) -> None:
    """Refuse a port that cannot be listened on; LangGraph's server would take another one silently.

    Raises:
        ServerError: it is taken, needs rights, or the host is none of this machine.
    """
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise ServerError(_why_not(error, address)) from error


def _why_not(error: OSError, address: Address) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            what = f"port {address.port} is taken; end what uses it, or choose another with --port"
        case errno.EACCES:
            what = f"port {address.port} needs rights that you lack; choose one above 1023"
        case _:
            what = f"{address.host!r} is no address of this machine; choose another with --host"
    return f"cannot serve: {what}"


def _variables(chosen: Environment, address: Address) -> dict[str, str]:
    """Return what the server finds in its environment: it runs elsewhere, so paths are absolute."""
    from dotenv import dotenv_values

    told = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    variables = told | dict(os.environ)
    variables |= {
        "CRAG_INDEX": chosen.index if "://" in chosen.index else str(Path(chosen.index).resolve()),
        "CRAG_PAGE_CACHE": str(chosen.page_cache.resolve()),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
    }
    for name in ("CRAG_EVALUATOR", "CRAG_EMBEDDING_MODEL", "CRAG_REFLECTION"):
        if name in variables and Path(variables[name]).exists():
            variables[name] = str(Path(variables[name]).resolve())
    if address.host in _LOOPBACK:
        variables["CRAG_SERVE_HOSTS"] = ",".join(_LOOPBACK)
    return variables


@contextmanager
def _server(
    address: Address, home: Path, variables: Mapping[str, str], *, verbose: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the server, and end it however the block is left."""
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--config", "langgraph.json"]
    command += ["--host", address.host, "--port", str(address.port), "--n-jobs-per-worker", "8"]
    command += ["--no-browser", "--no-reload"]
    with (home / "server.log").open("wb") as log:
        output = None if verbose else log
        # In a session of its own, Ctrl-C reaches this process alone, which ends the other in order.
        server = subprocess.Popen(  # noqa: S603 - our own interpreter, and no shell
            command, cwd=home, env=dict(variables), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT if output else None, start_new_session=True,
        )  # fmt: skip
        try:
            yield server
        except KeyboardInterrupt:
            _tell("\nStopped.")
        finally:
            _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, then make it: a stream that nobody closes could hold it for long."""
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Treat the signals that end a terminal or a service as Ctrl-C, so that nothing is left."""

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    # A shell starts what runs in its background with SIGINT ignored.
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), end) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


def _wait_until_ready(server: subprocess.Popen[bytes], address: Address, home: Path) -> None:
    import httpx

    deadline = time.monotonic() + _START_SECONDS
    with httpx.Client(trust_env=False, timeout=5) as client:
        while time.monotonic() < deadline and server.poll() is None:
            try:
                if client.get(f"{address.url}/ok").is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
    _give_up(server, home)


def _give_up(server: subprocess.Popen[bytes], home: Path) -> NoReturn:
    """Say what the server said last.

    Raises:
        ServerError: always.
    """
    said = (home / "server.log").read_text("utf-8", errors="replace").splitlines()
    ended = "did not answer in time" if server.poll() is None else f"ended ({server.returncode})"
    last = "\n".join(f"  {line}" for line in said[-_TOLD_LINES:])
    raise ServerError(f"LangGraph's server {ended}. Its last words:\n{last}")


def _announce(address: Address, *, opens: bool) -> None:
    _tell(f"Page    {address.url}/")
    _tell(f"API     {address.url}/docs")
    _tell(f"Studio  {STUDIO}/studio/?baseUrl={quote(address.url, safe='')}")
    if address.host not in _LOOPBACK and address.host != "::1":
        _tell("Whoever can reach this machine can ask, and read your documents.")
    _tell("Ctrl-C ends it.")
    if opens:
        import webbrowser

        webbrowser.open(f"{address.url}/")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
