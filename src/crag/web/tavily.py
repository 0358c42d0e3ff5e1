"""Tavily, the web search service, as a `WebSearcher`."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crag.errors import SearchError, SearchProblem
from crag.parts import Hit
from crag.web.asking import (
    TIMEOUT,
    address_of,
    broken_off,
    failure_of,
    query_of,
    shown,
    too_slow,
    unreachable,
    unreadable,
)
from crag.web.replies import objects, plain, text
from crag.web.retries import LONGEST_WAIT, patiently
from crag.web.service import certificates

if TYPE_CHECKING:
    import httpx
    import requests

ADDRESS = "https://api.tavily.com"
_PROVIDER = "Tavily"
_MOST_RESULTS = 20


class TavilySearcher:
    """Search through Tavily with the user's key; keyless access is never used.

    Rate limits, server errors and timeouts are retried with backoff and jitter, with at most three
    requests in total; an invalid key and a spent plan are not. The key goes to `base_url` and
    nowhere else: redirects are not followed. With `raw_content` the service also returns the text
    of each page, which saves fetching it.

    Raises:
        SearchError: `search` or `asearch` failed; `problem` says why.
    """

    longest_query: int = 400
    """Characters; Tavily refuses longer queries, so they are cut."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        raw_content: bool = True,
        timeout: float = TIMEOUT,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        if not api_key.strip():
            raise SearchError(_PROVIDER, "key", "the key is empty: set TAVILY_API_KEY")
        self._address = address_of(_PROVIDER, base_url or ADDRESS, "TAVILY_BASE_URL")
        self._client: dict[str, Any] = {"api_key": api_key.strip(), "api_base_url": self._address}
        self._raw_content, self._timeout = raw_content, timeout
        again = patiently(longest_wait)
        self._search, self._asearch = again(self._request), again(self._arequest)

    def __repr__(self) -> str:
        return f"TavilySearcher({shown(self._address)!r})"  # Keep the key out of logs.

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return self._search(self._options(query, limit))[:limit]

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        return (await self._asearch(self._options(query, limit)))[:limit]

    def _request(self, options: Mapping[str, Any]) -> list[Hit]:
        import requests
        from tavily import TavilyClient

        with requests.Session() as session, self._failures() as seen:
            session.max_redirects = 0
            session.hooks["response"].append(seen.note)
            return _hits(TavilyClient(**self._client, session=session).search(**options))

    async def _arequest(self, options: Mapping[str, Any]) -> list[Hit]:
        import httpx
        from tavily import AsyncTavilyClient

        trusted = await asyncio.to_thread(certificates)
        with self._failures() as seen:
            hooks = {"response": [seen.anote]}
            async with httpx.AsyncClient(
                base_url=self._address, event_hooks=hooks, verify=trusted
            ) as connection:
                client = AsyncTavilyClient(**self._client, client=connection)
                return _hits(await client.search(**options))

    def _options(self, query: str, limit: int) -> dict[str, Any]:
        return {
            "query": query_of(_PROVIDER, query, self.longest_query),
            "max_results": min(limit, _MOST_RESULTS),
            "include_raw_content": "text" if self._raw_content else None,
            "timeout": self._timeout,
        }

    @contextmanager
    def _failures(self) -> Iterator["_StatusRecorder"]:
        """Translate the exceptions of the client and its two HTTP libraries."""
        import httpx
        import requests
        from tavily import errors

        seen = _StatusRecorder()
        try:
            yield seen
        except errors.InvalidAPIKeyError as error:
            raise _error("key", "the key is not valid: check TAVILY_API_KEY") from error
        except errors.ForbiddenError as error:
            message = f"refused, perhaps the plan's limit is reached: {_words(error)}"
            raise _error("request", message) from error
        except errors.BadRequestError as error:
            raise _error("request", f"the query was not accepted: {_words(error)}") from error
        except (errors.TimeoutError, httpx.TimeoutException, requests.Timeout) as error:
            raise too_slow(_PROVIDER) from error
        except (
            errors.UsageLimitExceededError,
            httpx.HTTPStatusError,
            requests.HTTPError,
            requests.TooManyRedirects,
        ) as error:
            raise failure_of(_PROVIDER, seen.status, seen.wait) from error
        except (httpx.ConnectError, httpx.InvalidURL, requests.ConnectionError) as error:
            raise unreachable(_PROVIDER, self._address) from error
        # The client fails on JSON of another form.
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise unreadable(_PROVIDER) from error
        except (httpx.HTTPError, requests.RequestException) as error:
            raise broken_off(_PROVIDER, error) from error


class _StatusRecorder:
    """Record the status and Retry-After, which the client's exceptions do not have."""

    def __init__(self) -> None:
        self.status = 0
        self.wait: str | None = None

    def note(self, response: "requests.Response | httpx.Response", **_: object) -> None:
        self.status, self.wait = response.status_code, response.headers.get("Retry-After")

    async def anote(self, response: "httpx.Response") -> None:
        self.note(response)


def _hits(reply: Mapping[str, Any]) -> list[Hit]:
    return [
        Hit(
            plain(result.get("title")),
            text(result.get("url")),
            plain(result.get("content")),
            text(result.get("raw_content")),
        )
        for result in objects(reply.get("results"))
    ]


def _words(error: Exception) -> str:
    """Return the service's message, shortened."""
    return plain(str(error))[:200] or "no reason given"


def _error(problem: SearchProblem, message: str) -> SearchError:
    return SearchError(_PROVIDER, problem, message)
