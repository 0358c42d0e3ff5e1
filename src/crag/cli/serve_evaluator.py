"""`crag serve-evaluator`: the evaluator as a service, for graphs on this and on other machines."""

import sys

from crag.cli.serve import Address, ServerError, require_port
from crag.cli.terminal import ending_on_signals, environment
from crag.extras import require


def run(host: str, port: int) -> None:
    """Serve the evaluator that CRAG_EVALUATOR names until Ctrl-C.

    Raises:
        CragError: the evaluator cannot be used, the port is taken, or other machines could ask
            without a token.
    """
    require("evaluator", "crag serve-evaluator", "starlette", "uvicorn")
    import uvicorn

    from crag.server.evaluator import served

    address, chosen = Address(host, port), environment(None)
    if chosen.evaluator_token is None and not address.is_loopback:
        message = (
            f"{host} lets other machines ask: set CRAG_EVALUATOR_TOKEN, here and where they are, "
            "or listen on 127.0.0.1"
        )
        raise ServerError(message)
    require_port(address)
    app = served(chosen)
    sys.stdout.write(f"Evaluator  {address.url}  ({chosen.evaluator})\nCtrl-C ends it.\n")
    sys.stdout.flush()
    with ending_on_signals():
        uvicorn.run(
            app, host=host, port=port, log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=3,
        )  # fmt: skip
