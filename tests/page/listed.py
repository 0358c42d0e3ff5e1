"""The page's application, and the routes of the server that it becomes part of."""

from collections.abc import Iterable, Iterator

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from crag.page.app import app

WEBSOCKET = "WEBSOCKET"


def walked(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield method and path of each route, and of what is mounted."""
    for route in routes:
        if isinstance(route, Mount):
            yield from walked(route.routes, prefix + route.path)
            if not route.routes:
                yield ("GET", f"{prefix}{route.path}/anything")
        elif isinstance(route, WebSocketRoute):
            yield (WEBSOCKET, prefix + route.path)
        elif isinstance(route, Route):
            yield from ((method, prefix + route.path) for method in sorted(route.methods or ["*"]))
        else:
            raise TypeError(f"{route!r}: say here how it is asked")


async def routes(_: Request) -> JSONResponse:
    return JSONResponse(sorted(set(walked(app.routes))))


app.router.routes.append(Route("/info/routes", routes))
