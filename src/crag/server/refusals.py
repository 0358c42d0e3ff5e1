"""Why the API refuses a request: the HTTP status, what is wrong, and when to try again."""

from typing import NoReturn
from uuid import UUID


class RefusedRequestError(Exception):
    """A request that cannot be served as it is."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        self.status, self.detail, self.retry_after = status, detail, retry_after
        super().__init__(detail)


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
