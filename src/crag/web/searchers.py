"""The search services: Tavily, SearXNG and Wikipedia, and any function of the user's own."""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from crag import __version__
from crag.errors import SearchError, SearchProblem
from crag.parts import Hit
from crag.plain import without_credentials
from crag.web.guard import certificates
from crag.web.retries import Passing, patiently, retry_after

ATTEMPTS = 3
"""Most requests for one search, as in the official code."""
_UNAUTHORIZED, _FORBIDDEN, _TOO_MANY, _SERVER_ERRORS = 401, 403, 429, 500
_LANGUAGE = re.compile(r"[a-z]{2,12}(-[a-z]{2,12}){0,3}")
_BUSY = re.compile(r"ratelimited|internal_api_error|maxlag|readonly|.*(backend-error|too-busy)")
_TAG = re.compile(r"<[^>]*>")


class FunctionSearcher:
    """A searcher that is a function ``search(query, limit) -> list[Hit]``."""

    def __init__(self, function: Callable[[str, int], list[Hit]]) -> None:
        self._function = function

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return what the function finds."""
        return self._function(query, limit)

    def __repr__(self) -> str:
        return f"{self._function.__module__}:{self._function.__qualname__}"


class ServiceSearcher(ABC):
    """Search by one request; redirects are not followed.

    Rate limits, server errors and timeouts are retried, with at most three requests in total and
    `longest_wait` seconds between two of them. `variable` is the environment variable that sets
    `address`.

    Raises:
        SearchError: the address is not an http(s) URL; a search failed. `problem` says why.
    """

    provider: str
    longest_query: int
    """Characters, for the graph, which cuts its query."""
    forbidden = "the request was not accepted (HTTP 403)"
    """What that status means, where the service is known to send it for one reason."""

    def __init__(
        self, address: str, variable: str, *, timeout: float = 20.0, longest_wait: float = 8.0
    ) -> None:
        try:
            url = httpx.URL(address)
            is_usable = url.scheme in ("http", "https") and bool(url.host)
        except httpx.InvalidURL:
            is_usable = False
        if not is_usable:
            message = f"{variable} must be an address such as https://search.example.org"
            raise self.error(message, "request")
        self.address, self.timeout, self._longest_wait = address, timeout, longest_wait
        self._shown = without_credentials(address, queries=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r})"

    @abstractmethod
    def find(self, query: str, limit: int) -> list[Hit]:
        """Ask the service once; exceptions of httpx and requests, and of parsing, may escape."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first."""
        return patiently(lambda: self._ask(query, limit), ATTEMPTS, self._longest_wait)

    def get(self, parameters: Mapping[str, str], agent: str = "") -> Any:
        """Return the reply to a request with these parameters."""
        headers = {"User-Agent": f"corrective-rag/{__version__}{agent}"}
        with httpx.Client(verify=certificates(), timeout=self.timeout, headers=headers) as client:
            return client.get(self.address, params=parameters).raise_for_status().json()

    def error(self, message: str, problem: SearchProblem = "server") -> SearchError:
        """Return an error of this service."""
        return SearchError(self.provider, problem, message)

    def _ask(self, query: str, limit: int) -> list[Hit]:
        try:
            return [
                Hit(" ".join(title.split()), url, " ".join(snippet.split()), text)
                for title, url, snippet, text in self.find(query, limit)[:limit]
            ]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self.error("the reply cannot be read: check the address") from error
        except (httpx.HTTPError, OSError) as error:  # Those of requests are OSErrors.
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Exception:
        """Return what to raise for a request that failed."""
        response, name = getattr(error, "response", None), type(error).__name__
        if response is None and "Timeout" in name:
            return Passing(self.error("no answer in time: try again later", "timeout"))
        if response is None:
            return self.error(f"{self._shown} cannot be reached ({name}): check the address")
        status, wait = response.status_code, retry_after(response.headers.get("Retry-After"))
        later = "" if wait is None else f" (the service asks to wait {wait:.0f} s)"
        if status == _TOO_MANY:
            message = f"too many requests, or the quota is used up: try again later{later}"
            return Passing(self.error(message, "quota"), wait)
        if status >= _SERVER_ERRORS:
            return Passing(self.error(f"the server failed (HTTP {status}){later}"), wait)
        if status == _UNAUTHORIZED:
            return self.error("the key or password is not valid", "key")
        message = f"the request was not accepted (HTTP {status})"
        return self.error(self.forbidden if status == _FORBIDDEN else message, "request")


class TavilySearcher(ServiceSearcher):
    """Search by Tavily's client with the user's key; `options` are those of `ServiceSearcher`.

    Keyless access is never used, and the key goes to `base_url` and nowhere else. The service also
    returns the text of each page, which saves fetching it.
    """

    provider, longest_query = "Tavily", 400

    def __init__(self, api_key: str, *, base_url: str | None = None, **options: Any) -> None:
        if not (key := api_key.strip()):
            raise self.error("the key is empty: set TAVILY_API_KEY", "key")
        address = (base_url or "https://api.tavily.com").strip().rstrip("/")
        super().__init__(address, "TAVILY_BASE_URL", **options)
        self._key = key

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
        address = base_url.strip().rstrip("/").removesuffix("/search") + "/search"
        super().__init__(address, "SEARXNG_URL", **options)

    def find(self, query: str, limit: int) -> list[Hit]:  # noqa: ARG002 - the server has no limit
        """Ask once; no hits at all because the server's engines failed is an error."""
        reply = self.get({"q": query, "format": "json"})
        if not reply["results"] and (failed := reply.get("unresponsive_engines")):
            engines = ", ".join(": ".join(engine[:2]) for engine in failed[:5])
            raise self.error(f"no engine of the server answered: {engines}. Check its engines")
        return [_hit(result, "title", "url", "content") for result in reply["results"]]


class WikipediaSearcher(ServiceSearcher):
    """Search one Wikipedia, or another MediaWiki, through its API.

    The snippet of a hit is the introduction of its article, up to 1,200 characters, or the snippet
    of the search. MediaWiki returns the whole text of only one page per request, so the page reader
    fetches the articles. `contact` is sent to the wiki, as Wikimedia's policy asks.
    """

    provider, longest_query = "Wikipedia", 300
    forbidden = (
        "the wiki refused the request (HTTP 403): Wikimedia's policy requires a contact; set "
        "CRAG_CONTACT to your e-mail address or URL"
    )

    def __init__(
        self,
        *,
        language: str = "en",
        base_url: str | None = None,
        contact: str = "",
        **options: Any,
    ) -> None:
        if not _LANGUAGE.fullmatch(language):
            message = f"CRAG_WIKIPEDIA_LANGUAGE cannot be {language!r}: write a code such as en"
            raise self.error(message, "request")
        address = (base_url or f"https://{language}.wikipedia.org").strip().rstrip("/")
        address += "" if address.endswith(".php") else "/w/api.php"
        super().__init__(address, "CRAG_WIKIPEDIA_URL", **options)
        written = "".join(c for c in contact if c.isascii() and c.isprintable() and c not in "()")
        self._agent = f" (Corrective RAG; {written}) httpx/{httpx.__version__}"

    def find(self, query: str, limit: int) -> list[Hit]:
        """Ask once; the API takes at most 20 extracts of 1,200 characters."""
        asked = {
            "action": "query", "format": "json", "formatversion": "2", "generator": "search",
            "gsrsearch": query, "gsrlimit": str(limit), "gsrnamespace": "0", "gsrprop": "snippet",
            "prop": "info|extracts", "inprop": "url", "exintro": "1", "explaintext": "1",
            "exchars": "1200", "exlimit": str(min(limit, 20)),
        }  # fmt: skip
        reply = self.get(asked, self._agent)
        if error := reply.get("error"):  # It comes with the status of a success.
            failure = self.error(error.get("info") or "the search failed")
            raise Passing(failure) if _BUSY.match(error.get("code") or "") else failure
        pages = reply["query"]["pages"] if reply.get("query") else []
        for page in pages:
            snippet = html.unescape(_TAG.sub("", page.get("snippet") or ""))
            page["extract"] = page.get("extract") or snippet
        ranked = sorted(pages, key=lambda page: page["index"])
        return [_hit(page, "title", "fullurl", "extract") for page in ranked]


def _raise_for_status(reply: Any, **_: Any) -> None:
    """Raise before Tavily's client does, whose exceptions hold no Retry-After."""
    if not reply.ok:
        reply.close()
        reply.raise_for_status()


def _hit(result: Mapping[str, Any], *names: str) -> Hit:
    return Hit(*(result.get(name) or "" for name in names))
