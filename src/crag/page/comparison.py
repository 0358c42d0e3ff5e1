"""What correction changed, for the page: as `crag ask --compare` tells it, of states it is sent."""

from functools import cache

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


async def comparison(request: Request) -> Response:
    """Return the strips that were dropped, shortened and added."""
    try:
        states = _adapter().validate_json(await request.body())
    except ValidationError as error:
        return JSONResponse({"detail": problems(error)}, 422)
    changed = compare(states["plain"], states["corrected"])
    return JSONResponse(changed._asdict(), headers={"Cache-Control": "no-store"})


@cache
def _adapter() -> TypeAdapter[_States]:
    return TypeAdapter(_States)


ROUTES = [Route("/compare", comparison, methods=["POST"])]
