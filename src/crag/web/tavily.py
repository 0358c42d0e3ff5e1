"""Tavily, the web search service, as a `WebSearcher`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crag.errors import SearchError
from crag.parts import Hit
from crag.web.search_replies import objects, plain, text
from crag.web.searcher import JsonSearcher, certificates

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://api.tavily.com"
_MOST_RESULTS = 20
"""The most that the API takes."""


class TavilySearcher(JsonSearcher):
    """Search by Tavily's client with the user's key; `options` are those of `JsonSearcher`.

    Keyless access is never used, and the key goes to `base_url` and nowhere else. With
    `raw_content` the service also returns the text of each page, which saves fetching it.
    """

    provider = "Tavily"
    longest_query: int = 400
    """Characters; Tavily refuses longer queries, so they are cut."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        raw_content: bool = True,
        **options: Any,
    ) -> None:
        if not (key := api_key.strip()):
            raise SearchError(self.provider, "key", "the key is empty: set TAVILY_API_KEY")
        super().__init__(base_url or ADDRESS, "TAVILY_BASE_URL", **options)
        self._client: dict[str, Any] = {"api_key": key, "api_base_url": self.address}
        self._raw_content = raw_content

    def request(self, query: str, limit: int) -> Mapping[str, Any]:
        """Return the arguments of the client's `search`."""
        return {
            "query": query,
            "max_results": min(limit, _MOST_RESULTS),
            "include_raw_content": "text" if self._raw_content else None,
            "timeout": self._timeout,
        }

    def hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Read the hits, with the text of each page where it was asked for."""
        return [
            Hit(
                plain(result.get("title")),
                text(result.get("url")),
                plain(result.get("content")),
                text(result.get("raw_content")),
            )
            for result in objects(reply.get("results"))
        ]

    async def _ask(self, request: Mapping[str, Any]) -> list[Hit]:
        import httpx
        from tavily import AsyncTavilyClient

        trusted = await asyncio.to_thread(certificates)
        with self._client_failures() as note:
            hooks = {"response": [note]}
            async with httpx.AsyncClient(
                base_url=self.address, event_hooks=hooks, verify=trusted
            ) as connection:
                client = AsyncTavilyClient(**self._client, client=connection)
                return self.hits(await client.search(**request))

    @contextmanager
    def _client_failures(self) -> "Iterator[Callable[[httpx.Response], Awaitable[None]]]":
        """Translate the exceptions of the client and its HTTP library.

        What is yielded notes a response, as the client's exceptions have no Retry-After.
        """
        import httpx
        from tavily import errors

        responses: list[httpx.Response] = []

        async def note(response: httpx.Response) -> None:
            responses.append(response)

        try:
            yield note
        except errors.InvalidAPIKeyError as error:
            raise self._error("the key is not valid: check TAVILY_API_KEY", "key") from error
        except errors.ForbiddenError as error:
            message = f"refused, perhaps the plan's limit is reached: {_words(error)}"
            raise self._error(message, "request") from error
        except errors.BadRequestError as error:
            message = f"the query was not accepted: {_words(error)}"
            raise self._error(message, "request") from error
        except (errors.TimeoutError, httpx.TimeoutException) as error:
            raise self._too_slow() from error
        except (errors.UsageLimitExceededError, httpx.HTTPStatusError) as error:
            raise self._failure(responses[-1]) from error
        except (httpx.ConnectError, httpx.InvalidURL) as error:
            raise self._unreachable() from error
        # The client fails on JSON of another form.
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise self._unreadable() from error
        except httpx.HTTPError as error:
            raise self._broken_off(error) from error


def _words(error: Exception) -> str:
    """Return the service's message, shortened."""
    return plain(str(error))[:200] or "no reason given"
