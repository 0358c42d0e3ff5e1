"""The search services: Tavily, SearXNG and Wikipedia."""

import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import httpx
from httpx import codes

from crag import __version__
from crag.errors import SearchError, SearchProblem
from crag.parts import Hit
from crag.plain import without_credentials
from crag.web.guard import certificates

ATTEMPTS = 3
"""Most requests for one search, as in the official code."""


class ServiceSearcher(ABC):
    """Search by one request; redirects are not followed.

    Rate limits, server errors and timeouts are retried, with at most three requests in total.
    Between two of them is the time that the server asks for; if that is longer than `longest_wait`
    seconds, there is no further request. If it asks for none, the wait is random and grows.

    Raises:
        SearchError: a search failed. `problem` says why.
    """

    provider: str
    longest_query: int
    """Characters, for the graph, which cuts its query."""
    forbidden = ""
    """What status 403 means, where the service is known to send it for one reason."""

    def __init__(self, address: str, *, timeout: float = 20.0, longest_wait: float = 8.0) -> None:
        self.address, self.timeout, self._longest_wait = address, timeout, longest_wait
        self._shown = without_credentials(address, queries=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r})"

    @abstractmethod
    def find(self, query: str, limit: int) -> list[Hit]:
        """Ask the service once; exceptions of httpx and requests, and of parsing, may escape."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        attempt = 1
        while True:
            try:
                return [
                    Hit(" ".join(title.split()), url, " ".join(snippet.split()), text)
                    for title, url, snippet, text in self.find(query, limit)[:limit]
                ]
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise self.error("the reply cannot be read: check the address") from error
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # OSErrors: of requests.
                failure, wait = self._failure(error, attempt)
                if attempt == ATTEMPTS or wait > self._longest_wait:
                    raise failure from error
            time.sleep(wait)
            attempt += 1

    def get(self, parameters: Mapping[str, str], agent: str = "") -> Any:
        """Return the reply to a request with these parameters."""
        headers = {"User-Agent": f"corrective-rag/{__version__}{agent}"}
        with httpx.Client(verify=certificates(), timeout=self.timeout, headers=headers) as client:
            return client.get(self.address, params=parameters).raise_for_status().json()

    def error(self, message: str, problem: SearchProblem = "server") -> SearchError:
        """Return an error of this service."""
        return SearchError(self.provider, problem, message)

    def _failure(self, error: Exception, attempt: int) -> tuple[SearchError, float]:  # noqa: PLR0911 - one for each reason
        """Return what to raise for a request that failed, and in how many seconds to ask again."""
        never, grown = math.inf, random.uniform(0, min(attempt, self._longest_wait))  # noqa: S311 - no secret
        if type(error) is httpx.HTTPError:  # No client raises it: these are the service's words.
            return self.error(str(error)), grown
        response, name = getattr(error, "response", None), type(error).__name__
        if response is None and "Timeout" in name:
            return self.error("no answer in time: try again later", "timeout"), grown
        if response is None:
            return self.error(f"{self._shown} cannot be reached ({name}): check the address"), never
        status, asked = response.status_code, response.headers.get("Retry-After", "")
        wait = float(asked) if asked.isdecimal() else grown
        later = f" (the service asks to wait {wait:.0f} s)" if asked.isdecimal() else ""
        if status == codes.TOO_MANY_REQUESTS:
            message = f"too many requests, or the quota is used up: try again later{later}"
            return self.error(message, "quota"), wait
        if status >= codes.INTERNAL_SERVER_ERROR:
            return self.error(f"the server failed (HTTP {status}){later}"), wait
        if status == codes.UNAUTHORIZED:
            return self.error("the key or password is not valid", "key"), never
        told = self.forbidden if status == codes.FORBIDDEN else ""
        message = told or f"the request was not accepted (HTTP {status})"
        return self.error(message, "request"), never


class TavilySearcher(ServiceSearcher):
    """Search by Tavily's client with the user's key; `options` are those of `ServiceSearcher`.

    Keyless access is never used, and the key goes to `base_url` and nowhere else. The service also
    returns the text of each page, which saves fetching it.
    """

    provider, longest_query = "Tavily", 400

    def __init__(self, api_key: str, base_url: str, **options: Any) -> None:
        super().__init__(base_url.rstrip("/"), **options)
        self._key = api_key

    def find(self, query: str, limit: int) -> list[Hit]:
        """Ask once; the API takes at most 20 as the limit."""
        from tavily import TavilyClient, errors

        asked: Any = {"max_results": min(limit, 20), "include_raw_content": "text"}
        with TavilyClient(self._key, api_base_url=self.address) as client:
            client.session.max_redirects = 0
            client.session.auth = lambda request: request  # Else one of .netrc replaces the key.
            client.session.hooks["response"].append(_raise_for_status)
            try:
                reply: Any = client.search(query, timeout=self.timeout, **asked)
            except errors.TimeoutError as error:
                raise httpx.ReadTimeout(str(error)) from error
        return [
            _hit(hit, "title", "url", "content")._replace(text=hit.get("raw_content") or "")
            for hit in reply.get("results") or []
        ]


class SearxngSearcher(ServiceSearcher):
    """Search through a SearXNG server, whose settings.yml must allow replies in JSON."""

    provider, longest_query = "SearXNG", 1000
    forbidden = (
        "the server refused to reply in JSON (HTTP 403): allow it in the server's settings.yml, "
        "under `search`, with `formats: [html, json]`, and restart the server"
    )

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__(base_url.rstrip("/").removesuffix("/search") + "/search", **options)

    def find(self, query: str, limit: int) -> list[Hit]:  # noqa: ARG002 - the server has no limit
        """Ask once; no hits at all because the server's engines failed is an error."""
        reply = self.get({"q": query, "format": "json"})
        if not reply["results"] and (failed := reply.get("unresponsive_engines")):
            engines = ", ".join(": ".join(engine[:2]) for engine in failed[:5])
            raise self.error(f"no engine of the server answered: {engines}. Check its engines")
        return [_hit(result, "title", "url", "content") for result in reply["results"]]


class WikipediaSearcher(ServiceSearcher):
    """Search one Wikipedia, or another MediaWiki, through its API.

    The snippet of a hit is the introduction of its article, up to 1,200 characters. MediaWiki
    returns the whole text of only one page per request, so the page reader fetches the articles.
    `contact` is sent to the wiki, as Wikimedia's policy asks.
    """

    provider, longest_query = "Wikipedia", 300
    forbidden = (
        "the wiki refused the request (HTTP 403): Wikimedia's policy requires a contact; set "
        "CRAG_CONTACT to your e-mail address or URL"
    )

    def __init__(self, base_url: str, contact: str = "", **options: Any) -> None:
        address = base_url.rstrip("/")
        super().__init__(address + "/w/api.php" * (not address.endswith(".php")), **options)
        self._agent = f" (Corrective RAG; {contact}) httpx/{httpx.__version__}"

    def find(self, query: str, limit: int) -> list[Hit]:
        """Ask once; the API takes at most 20 extracts of 1,200 characters."""
        asked = {
            "action": "query", "format": "json", "formatversion": "2", "generator": "search",
            "gsrsearch": query, "gsrlimit": str(limit), "gsrnamespace": "0",
            "prop": "info|extracts", "inprop": "url", "exintro": "1", "explaintext": "1",
            "exchars": "1200", "exlimit": str(min(limit, 20)),
        }  # fmt: skip
        reply = self.get(asked, self._agent)
        if error := reply.get("error"):  # Such as of a busy server, with the status of a success.
            raise httpx.HTTPError(error.get("info") or "the search failed")
        pages = reply["query"]["pages"] if reply.get("query") else []
        ranked = sorted(pages, key=lambda page: page["index"])
        return [_hit(page, "title", "fullurl", "extract") for page in ranked]


def _raise_for_status(reply: Any, **_: Any) -> None:
    """Raise before Tavily's client does, whose exceptions hold no Retry-After."""
    if not reply.ok:
        reply.close()
        reply.raise_for_status()


def _hit(result: Mapping[str, Any], *names: str) -> Hit:
    return Hit(*(result.get(name) or "" for name in names))
