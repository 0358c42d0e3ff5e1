"""`crag serve`: the page, the graphs' API and Studio's server, on one port of this machine.

The server is LangGraph's own, or that of `crag.server` where a PostgreSQL database is named. It is
started as a process of its own, because what it keeps goes where it runs: into a temporary folder,
not into the folder that `crag serve` was called in. The module `crag.page.guard` decides who may
use it, by rules that it reads from the environment.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from crag.cli.address import ANY, Address, ServerError, require_port
from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import IndexOption, PortOption
from crag.cli.terminal import ending_on_signals, environment
from crag.extras import how_to_install, require
from crag.graph_registry import OFFERED

if TYPE_CHECKING:
    import subprocess

    from crag.page.rules import Rules
    from crag.runtime.environment import Environment

_START_SECONDS, _STOP_SECONDS = 120.0, 12.0
_STREAM_SECONDS, _SILENT_SECONDS = 3, 60
_TOLD_LINES = 12


@command(
    app,
    "crag serve --open",
    "crag serve --port 3000 --studio",
    "crag serve --host 0.0.0.0",
    extra="studio",
)
def serve(  # noqa: PLR0913, PLR0917 - one parameter for each option
    location: IndexOption = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; other machines may then ask too, with the token."),
    ] = "127.0.0.1",
    port: PortOption = 2024,
    studio: Annotated[
        bool,
        typer.Option("--studio", help="Let LangGraph Studio's web site use the server."),
    ] = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            help="Ask clients for the token in the printed address; without it, for one user alone "
            "on this machine.",
        ),
    ] = True,
    opens: Annotated[bool, typer.Option("--open", help="Open the page in your browser.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the server's output.")
    ] = False,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Keep threads and runs in this PostgreSQL database, for production; for a trial, "
            "name a folder to run PostgreSQL in.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes of the server; needs --postgres.")
    ] = 1,
    one_user: Annotated[
        bool,
        typer.Option(
            "--one-user",
            help="Let other machines use a production server although all have one token.",
        ),
    ] = False,
) -> None:
    """Serve the page, the graphs' API, and LangGraph Studio's server."""
    if workers > 1 and postgres is None:
        raise typer.BadParameter("--workers needs --postgres: name the database they share")
    if postgres is None:
        require_server()
    else:
        require("server", "crag serve --postgres", "psycopg_pool", "uvicorn", "starlette")

    import json
    import tempfile

    from crag.factory.parts import choose_parts
    from crag.telemetry.logs import UVICORN

    address, chosen = Address(host, port), environment(location)
    choose_parts(chosen, index_must_exist=True)
    require_port(address)
    rules = rules_for(
        address, studio=studio, token=token, production=postgres is not None, one_user=one_user
    )
    variables = _variables(chosen, rules)
    logs_json = chosen.logs == "json"
    with (
        tempfile.TemporaryDirectory(prefix="crag-serve-") as folder,
        ending_on_signals(),
        _database(postgres) as database,
    ):
        home = Path(folder)
        if database is None:
            (home / "langgraph.json").write_text(json.dumps(configuration(rules)), "utf-8")
            words = _development(address)
        else:
            variables["CRAG_SERVE_DATABASE"] = database
            words = _production(address, workers)
            if logs_json:
                (home / "logging.json").write_text(json.dumps(UVICORN), "utf-8")
                words += ["--log-config", "logging.json"]
        _tell("Starting the server")
        # Logs for a program go where it reads them: to standard error.
        with _server(words, home, variables, verbose=verbose or logs_json) as server:
            _wait_until_ready(server, address, home)
            _announce(address, rules, opens=opens, production=database is not None)
            if server.wait() != 0:
                _give_up(server, home)


def _database(postgres: str | None) -> AbstractContextManager[str | None]:
    """Return the URL of the database while it is needed; a folder is served for as long."""
    if postgres is None or "://" in postgres:
        return nullcontext(postgres)
    from crag.cli.trial_postgres import postgres_in

    return postgres_in(Path(postgres))


def _development(address: Address) -> list[str]:
    words = [sys.executable, "-m", "langgraph_cli", "dev", "--config", "langgraph.json"]
    words += ["--host", address.host, "--port", str(address.port), "--n-jobs-per-worker", "8"]
    return [*words, "--no-browser", "--no-reload"]


def _production(address: Address, workers: int) -> list[str]:
    words = [sys.executable, "-m", "uvicorn", "--factory", "crag.server.app:create"]
    words += ["--host", address.host, "--port", str(address.port), "--workers", str(workers)]
    # Addresses of requests may hold the token, so they are not logged.
    words += ["--no-access-log", "--no-server-header", "--no-proxy-headers"]
    # On a busy machine a process is slow to answer the one that watches it, and is not dead.
    words += ["--timeout-worker-healthcheck", str(_SILENT_SECONDS)]
    return [*words, "--timeout-graceful-shutdown", str(_STREAM_SECONDS)]


def rules_for(
    address: Address,
    *,
    studio: bool,
    token: bool,
    production: bool = False,
    one_user: bool = False,
) -> "Rules":
    """Return the rules of the environment, changed by the options.

    Raises:
        ServerError: other machines could use the server, and no token would be asked for; or, in
            production, nobody would say who they are.
    """
    from pydantic import SecretStr

    from crag.page.rules import STUDIO, Rules

    rules = Rules()
    changes: dict[str, Any] = {"token": None}
    if token and not rules.login:  # Users have keys of their own.
        import secrets

        changes["token"] = rules.token or SecretStr(secrets.token_urlsafe(24))
    elif not (rules.login or address.is_loopback):
        message = (
            f"--no-token is for this machine alone, and {address.host} lets others in: leave it "
            "out, or listen on 127.0.0.1"
        )
        raise ServerError(message)
    if studio:
        changes["origins"] = rules.origins | {STUDIO}
    if not address.is_loopback:
        import socket

        name = socket.gethostname() if address.host in ANY else address.host
        changes["hosts"] = rules.hosts | {name.lower()}
    if production and not (address.is_loopback or rules.login or one_user):
        message = (
            f"{address.host} lets others in, and all would be one user: give each a key in "
            "CRAG_SERVE_KEYS, or name the issuer of their tokens in CRAG_SERVE_OIDC_ISSUER; or "
            "say with --one-user that whoever has the token may see and change everything"
        )
        raise ServerError(message)
    return rules.model_copy(update=changes)


def configuration(rules: "Rules") -> dict[str, Any]:
    """Return the `langgraph.json` of this package, by module names, wherever it is installed."""
    from crag.page.rules import AUTH, settings_of_server

    graphs = {
        name: {"path": f"crag.graph.studio:{name}", "description": entry.description}
        for name, entry in OFFERED.items()
    }
    http = settings_of_server(rules.allow, rules.origins)
    found = {"dependencies": ["."], "graphs": graphs, "http": http}
    if rules.login:
        found["auth"] = AUTH
    return found


def require_server(package: str = "langgraph_cli") -> None:
    """Refuse to start without LangGraph's server.

    Raises:
        ServerError: it is not installed; the message names the command that installs it.
    """
    if find_spec(package) is None or find_spec("langgraph_api") is None:
        raise ServerError(f"crag serve needs LangGraph's server. {how_to_install('studio')}")


def _variables(chosen: "Environment", rules: "Rules") -> dict[str, str]:
    """Return what the server finds in its environment: it runs elsewhere, so paths are absolute."""
    from dotenv import dotenv_values

    told = {name: value for name, value in dotenv_values(".env").items() if value is not None}
    variables = told | dict(os.environ)
    variables |= {
        **{f"CRAG_{name.upper()}": place for name, place in chosen.places().items()},
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        **({"CRAG_CONFIG": str(chosen.config)} if chosen.config else {}),
        "LANGGRAPH_NO_VERSION_CHECK": "true",
    }
    if uploads := rules.uploads:
        variables["CRAG_SERVE_UPLOADS"] = str(uploads.expanduser().resolve())
    return variables | {
        "CRAG_SERVE_TOKEN": rules.token.get_secret_value() if rules.token else "",
        "CRAG_SERVE_HOSTS": ",".join(rules.hosts),
        "CRAG_SERVE_ORIGINS": ",".join(rules.origins),
    }


@contextmanager
def _server(
    words: list[str], home: Path, variables: Mapping[str, str], *, verbose: bool
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the server, and end it however the block is left."""
    import subprocess

    with (home / "server.log").open("wb") as log:
        output = None if verbose else log
        # In a session of its own, Ctrl-C reaches this process alone, which ends the other in order.
        server = subprocess.Popen(  # noqa: S603 - our own interpreter, and no shell
            words, cwd=home, env=dict(variables), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT if output else None, start_new_session=True,
        )  # fmt: skip
        try:
            yield server
        except KeyboardInterrupt:
            _tell("\nStopped.")
        finally:
            _end(server)


def _end(server: "subprocess.Popen[bytes]") -> None:
    """Terminate the server, and kill it and its workers if an open stream keeps it running."""
    from subprocess import TimeoutExpired

    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_until_ready(server: "subprocess.Popen[bytes]", address: Address, home: Path) -> None:
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


def _give_up(server: "subprocess.Popen[bytes]", home: Path) -> NoReturn:
    """Raise an error with the last lines of the server's log.

    Raises:
        ServerError: always.
    """
    said = (home / "server.log").read_text("utf-8", errors="replace").splitlines()
    ended = "did not answer in time" if server.poll() is None else f"ended ({server.returncode})"
    last = "\n".join(f"  {line}" for line in said[-_TOLD_LINES:])
    raise ServerError(f"the server {ended}. Its last lines:\n{last}")


def _announce(address: Address, rules: "Rules", *, opens: bool, production: bool) -> None:
    from urllib.parse import quote

    from crag.page.rules import STUDIO

    token = rules.token.get_secret_value() if rules.token else ""
    page = f"{address.url}/?token={token}" if token else f"{address.url}/"
    _tell(f"Page    {page}")
    _tell(f"API     {address.url}")
    if not production:
        _tell(f"MCP     {address.url}/mcp")
        _tell(f"OpenAI  {address.url}/v1")
    if token:
        _tell(f"Token   {token} (for the API, MCP and OpenAI clients, as their key)")
    if rules.login:
        _tell("Users   each with a key or token of their own (for programs, as x-api-key)")
    if STUDIO in rules.origins:
        base = f"{address.url}/token/{token}" if token else address.url
        _tell(f"Studio  {STUDIO}/studio/?baseUrl={quote(base, safe='')}")
        _tell(f"Pages of {STUDIO} may ask, and read your documents and runs.")
    if not address.is_loopback:
        _tell("Anyone who has the token and reaches this machine can use it and its documents;")
        _tell("nothing is encrypted.")
    _tell("Ctrl-C ends it.")
    if opens:
        import webbrowser

        webbrowser.open(page)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
