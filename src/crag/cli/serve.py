"""`crag serve`: the page, its API, OpenAI's protocol and MCP, on one port of this machine."""

import secrets
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated

import typer

from crag.cli import options
from crag.cli.terminal import environment
from crag.extras import require

if TYPE_CHECKING:
    from crag.serve.settings import ServeSettings

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server that listens everywhere is found
"""Hosts that stand for all addresses of this machine, with one of them."""


def serve(
    location: options.Index = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 2024,
    token: Annotated[bool, typer.Option(help="Ask clients for the printed token.")] = True,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="PostgreSQL that keeps the conversations.")
    ] = None,
) -> None:
    """Serve the page, its API, OpenAI's protocol at /v1, and MCP at /mcp.

    Other machines may ask too where --host lets them, with the token. Without --database,
    conversations are kept in a file beside the index.
    """
    require("serve", "crag serve", "starlette", "uvicorn", "sse_starlette", "aiosqlite")
    import uvicorn

    from crag.factory.parts import choose_parts
    from crag.graph_registry import built
    from crag.serve.app import create
    from crag.serve.storage import check_database, database_of
    from crag.telemetry import start

    chosen, family = environment(location), socket.AF_INET6 if ":" in host else socket.AF_INET
    parts = choose_parts(chosen, index_must_exist=True)
    settings = settings_for(host, token=token, database=database)
    check_database(database_of(chosen, settings))
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        problem = f"nobody can listen on {host}, port {port} ({error.strerror})"
        raise typer.BadParameter(f"{problem}: choose another --port or --host") from None
    start()
    config = uvicorn.Config(
        create(chosen, settings, built(parts)), log_level="warning", access_log=False,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=3,
    )  # fmt: skip
    _announce(host, port, settings)
    uvicorn.Server(config).run([listening])


def settings_for(host: str, *, token: bool, database: str | None = None) -> "ServeSettings":
    """Return the settings of the environment, changed by the options.

    Raises:
        BadParameter: other machines could use the server, and nobody would say who they are.
    """
    from pydantic import SecretStr

    from crag.serve.settings import ServeSettings

    settings = ServeSettings()
    if not (token or settings.has_users or _is_loopback(host)):
        problem = f"--no-token is for this machine alone, and {host} lets others in"
        raise typer.BadParameter(f"{problem}: leave it out, or listen on 127.0.0.1")
    hosts = settings.hosts | {host.lower(), socket.gethostname().lower()}
    required = settings.token or SecretStr(secrets.token_urlsafe(24))
    asked = required if token and not settings.has_users else None  # Users have keys of their own.
    changed = {"hosts": hosts, "token": asked, "database": database or settings.database}
    return settings.model_copy(update=changed)


def _is_loopback(host: str) -> bool:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return all(ip_address(place[0]).is_loopback for *_, place in found)


def _announce(host: str, port: int, settings: "ServeSettings") -> None:
    shown = _ANY.get(host, host)
    url = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
    token = settings.token.get_secret_value() if settings.token else ""
    # What follows # stays in the browser: no server, proxy or log ever sees it.
    page = f"{url}/#token={token}" if token else f"{url}/"
    lines = [f"Page    {page}", f"MCP     {url}/mcp", f"OpenAI  {url}/v1"]
    lines += [f"Token   {token} (for programs, as their key)"] if token else []
    lines += ["Users   each with a key or token of their own"] if settings.has_users else []
    if not _is_loopback(host):
        lines.append("Whoever has a key and reaches this machine can use it; nothing is encrypted.")
    typer.echo("\n".join([*lines, "Ctrl-C ends it."]))
