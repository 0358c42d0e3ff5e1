"""Why the API refuses a request: the HTTP status, what is wrong, and when to try again."""

from math import ceil
from typing import NoReturn

from starlette.exceptions import HTTPException


class RefusedRequestError(HTTPException):
    """A request that cannot be served as it is."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        headers = {"Retry-After": str(ceil(retry_after))} if retry_after else None
        super().__init__(status, detail, headers)


def not_found(what: str) -> NoReturn:
    """Refuse: it does not exist, or belongs to somebody else."""
    raise RefusedRequestError(404, f"{what} not found.")
