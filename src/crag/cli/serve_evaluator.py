"""`crag serve-evaluator`: the evaluator as a service, for graphs on this and on other machines."""

from typing import Annotated

import typer

from crag.cli.address import Address, ServerError, require_port
from crag.cli.app import app, examples
from crag.cli.options import PortOption
from crag.cli.terminal import ending_on_signals, environment, safe, say


@app.command("serve-evaluator", epilog=examples("crag serve-evaluator --port 2026"))
def serve_evaluator(
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: PortOption = 2025,
) -> None:
    """Serve the evaluator to other processes, which name it in CRAG_EVALUATOR by its URL."""
    import uvicorn

    from crag.evaluator_service.app import served

    address, chosen = Address(host, port), environment()
    if chosen.evaluator_token is None and not address.is_loopback:
        message = (
            f"{host} lets other machines ask: set CRAG_EVALUATOR_TOKEN, here and where they are, "
            "or listen on 127.0.0.1"
        )
        raise ServerError(message)
    require_port(address)
    service = served(chosen)
    say(f"Evaluator  {address.url}  ({safe(chosen.evaluator)})\nCtrl-C ends it.")
    with ending_on_signals():
        uvicorn.run(
            service, host=host, port=port, log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=3,
        )  # fmt: skip
