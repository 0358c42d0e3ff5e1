"""Clients that leave before they have their reply."""

import asyncio
from typing import Any

from starlette.requests import Request


async def ended_first(waited: "asyncio.Future[Any]", request: Request) -> bool:
    """Wait until `waited` has ended, or the client of `request` left; return whether it ended.

    The body of the request must have been read.
    """
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([waited, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
    return waited.done()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
