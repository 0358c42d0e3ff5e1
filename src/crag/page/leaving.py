"""Clients that leave before they have their reply."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

_T = TypeVar("_T")


async def unless_left(request: Request, waited: Coroutine[Any, Any, _T]) -> _T:
    """Wait for what `waited` returns; it is cancelled when the client of `request` leaves.

    The body of the request must have been read.

    Raises:
        ClientDisconnect: the client has left.
    """
    waiting, leaving = asyncio.create_task(waited), asyncio.create_task(_left(request))
    try:
        await asyncio.wait([waiting, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise ClientDisconnect
        return await waiting
    finally:
        waiting.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
