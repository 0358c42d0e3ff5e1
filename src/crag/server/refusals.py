"""Why the API refuses a request: the HTTP status, what is wrong, and when to try again."""

from math import ceil
from typing import NoReturn
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class RefusedRequestError(HTTPException):
    """A request that cannot be served as it is."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        headers = {"Retry-After": str(ceil(retry_after))} if retry_after else None
        super().__init__(status, detail, headers)


def refused(_: Request, error: Exception) -> Response:
    """Reply to a `RefusedRequestError`, as registered with Starlette."""
    assert isinstance(error, HTTPException)  # noqa: S101 - as registered
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def not_found(what: str) -> NoReturn:
    """Raise: it does not exist, or belongs to somebody else.

    Raises:
        RefusedRequestError: always, with status 404.
    """
    raise RefusedRequestError(404, f"{what} not found.")


def identifier(text: str, what: str) -> UUID:
    """Return an id of a path or a body.

    Raises:
        RefusedRequestError: it is none.
    """
    try:
        return UUID(text)
    except ValueError:
        raise RefusedRequestError(422, f"Invalid {what} ID: {text[:100]!r} is no UUID.") from None
