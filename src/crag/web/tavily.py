"""Tavily, the web search service, as a `WebSearcher`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random_exponential

from crag.errors import SearchError, SearchProblem
from crag.parts import Hit

TIMEOUT = 20.0
"""Seconds for one request."""
ATTEMPTS = 3
"""Requests in all for one search, as in the official code."""
_HEALS = ("timeout", "server", "quota")
_LONGEST_QUERY = 400
_PROVIDER = "Tavily"


class TavilySearcher:
    """Search through Tavily with the user's key; keyless access is never used.

    A rate limit, a server error and a timeout are tried again with backoff and jitter, at most
    three requests in all; an invalid key and a spent plan are not.

    Raises:
        SearchError: from `search` and `asearch`, when no result came; `problem` says why.
    """

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        timeout: float = TIMEOUT,
        longest_wait: float = 8.0,
    ) -> None:
        if not api_key.strip():
            raise SearchError(_PROVIDER, "key", "the key is empty: set TAVILY_API_KEY")
        self._client: dict[str, Any] = {"api_key": api_key, "api_base_url": base_url}
        self._timeout = timeout
        again = retry(
            retry=retry_if_exception(_can_heal),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.5, max=longest_wait),
            reraise=True,
        )
        self._search, self._asearch = again(self._request), again(self._arequest)

    def __repr__(self) -> str:
        return "TavilySearcher()"  # The key stays out of logs and tracebacks.

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return self._search(query, limit)

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        return await self._asearch(query, limit)

    def _request(self, query: str, limit: int) -> list[Hit]:
        from tavily import TavilyClient

        client = TavilyClient(**self._client)
        with _as_search_errors():
            try:
                return _hits(client.search(**self._options(query, limit)), limit)
            finally:
                client.close()

    async def _arequest(self, query: str, limit: int) -> list[Hit]:
        from tavily import AsyncTavilyClient

        with _as_search_errors():
            async with AsyncTavilyClient(**self._client) as client:
                return _hits(await client.search(**self._options(query, limit)), limit)

    def _options(self, query: str, limit: int) -> dict[str, Any]:
        return {"query": query[:_LONGEST_QUERY], "max_results": limit, "timeout": self._timeout}


def _hits(reply: Mapping[str, Any], limit: int) -> list[Hit]:
    """Read the results; one without a URL cannot be cited and is left out."""
    return [
        Hit(str(result.get("title") or ""), str(result["url"]), str(result.get("content") or ""))
        for result in reply.get("results") or []
        if result.get("url")
    ][:limit]


@contextmanager
def _as_search_errors() -> Iterator[None]:
    """Translate what the client and its two HTTP libraries raise."""
    import httpx
    import requests
    from tavily import errors

    try:
        yield
    except errors.InvalidAPIKeyError as error:
        raise _error("key", "the key is not valid: check TAVILY_API_KEY") from error
    except errors.ForbiddenError as error:
        raise _error("request", f"refused, perhaps the plan's limit is reached: {error}") from error
    except errors.UsageLimitExceededError as error:
        raise _error("quota", f"too many requests, or the quota is used up: {error}") from error
    except (errors.TimeoutError, httpx.TimeoutException, requests.Timeout) as error:
        raise _error("timeout", "no answer in time: try again later") from error
    except errors.BadRequestError as error:
        raise _error("request", f"the query was not accepted: {error}") from error
    except (httpx.HTTPError, requests.RequestException) as error:
        raise _error("server", f"{type(error).__name__}: try again later") from error
    except ValueError as error:  # A body that is not JSON.
        raise _error("server", "the reply cannot be read: try again later") from error


def _error(problem: SearchProblem, message: str) -> SearchError:
    return SearchError(_PROVIDER, problem, message)


def _can_heal(error: BaseException) -> bool:
    return isinstance(error, SearchError) and error.problem in _HEALS
