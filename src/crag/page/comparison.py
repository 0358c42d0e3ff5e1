"""What correction changed, for the page: as `crag ask --compare` tells it, of states it is sent."""

from typing import Final

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from crag.correction.comparison import compare
from crag.plain import problems
from crag.state import Strip


class _Plain(TypedDict):
    internal: list[Strip]


class _Corrected(_Plain):
    external: list[Strip]


class _States(TypedDict):
    """What plain retrieval and correction came to, after the same question."""

    plain: _Plain
    corrected: _Corrected


_STATES: Final = TypeAdapter(_States)


async def comparison(request: Request) -> Response:
    """Return the strips that were dropped, shortened and added."""
    try:
        states = _STATES.validate_json(await request.body())
    except ValidationError as error:
        return JSONResponse({"detail": problems(error)}, 422)
    changed = compare(states["plain"], states["corrected"])
    return JSONResponse(changed._asdict(), headers={"Cache-Control": "no-store"})


ROUTES = [Route("/compare", comparison, methods=["POST"])]
