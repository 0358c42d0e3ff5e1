"""Web search: the search service and the page reader."""

import re
from typing import Literal, get_args

from crag.errors import CragError, SearchError, SettingsError
from crag.factory.status import PartStatus
from crag.parts import PageReader, WebSearcher
from crag.runtime.entry_points import imported
from crag.runtime.environment import Environment

SearchName = Literal["tavily", "wikipedia", "searxng", "none"]
SEARCHER_HINT = "set TAVILY_API_KEY or SEARXNG_URL, or CRAG_SEARCH=wikipedia"
"""How to get a searcher from the environment."""
_FUNCTION = re.compile(r"[\w.]+:\w+")


def choose_searcher(environment: Environment) -> WebSearcher | None:
    """Return the web searcher, or None if none is configured.

    Nothing leaves the machine unless configured: Wikipedia needs no key, so it must be named.

    Raises:
        CragError: `CRAG_SEARCH` is not a known name, or the service's key or address is missing or
            wrong.
    """
    name = search_name(environment)[0]
    if name == "none":
        return None
    from crag.web import SearxngSearcher, TavilySearcher, WikipediaSearcher

    match name:
        case "tavily":
            if (key := environment.tavily_api_key) is None:
                message = "CRAG_SEARCH=tavily needs a key: set TAVILY_API_KEY"
                raise SearchError("Tavily", "key", message)
            address = environment.tavily_base_url
            return TavilySearcher(key.get_secret_value(), base_url=address)
        case "searxng":
            if environment.searxng_url is None:
                message = "CRAG_SEARCH=searxng needs the address of a server: set SEARXNG_URL"
                raise SearchError("SearXNG", "request", message)
            return SearxngSearcher(environment.searxng_url)
        case "wikipedia":
            return WikipediaSearcher(
                language=environment.wikipedia_language,
                base_url=environment.wikipedia_url,
                contact=environment.contact,
            )
        case _:
            return _own(name)


def choose_reader(environment: Environment) -> PageReader:
    """Return the page reader."""
    from crag.web.reader import HttpPageReader

    return HttpPageReader(allow_loopback=environment.allow_loopback)


def search_name(environment: Environment) -> tuple[str, str]:
    """Return the name of the search service, such as none, and the variable that chose it.

    Raises:
        SettingsError: `CRAG_SEARCH` is not one of the names, nor ``module:function``.
    """
    if environment.search is not None:
        name = environment.search.strip()
        if _FUNCTION.fullmatch(name):
            return name, "CRAG_SEARCH"
        if name.lower() in get_args(SearchName):
            return name.lower(), "CRAG_SEARCH"
        allowed = f"allowed are {', '.join(get_args(SearchName))} and module:function"
        raise SettingsError("CRAG_SEARCH", environment.search, allowed)
    if environment.tavily_api_key is not None:
        return "tavily", "TAVILY_API_KEY"
    if environment.searxng_url is not None:
        return "searxng", "SEARXNG_URL"
    return "none", ""


def examine_web(environment: Environment) -> list[PartStatus]:
    """Describe the web search and the page reader; nothing is sent."""
    searcher = _searcher(environment)
    return [searcher, _reader(environment, has_searcher=searcher.state == "ready")]


def _own(name: str) -> WebSearcher:
    """Return the searcher that is the user's own function."""
    from crag.web.searchers import FunctionSearcher

    try:
        function = imported(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError("CRAG_SEARCH", name, f"it cannot be imported: {error}") from error
    if not callable(function):
        raise SettingsError("CRAG_SEARCH", name, "it must be a function search(query, limit)")
    return FunctionSearcher(function)  # pyright: ignore[reportReturnType, reportArgumentType]


def _searcher(environment: Environment) -> PartStatus:
    part, name, why = "web search", environment.search or "", "CRAG_SEARCH"
    try:
        name, why = search_name(environment)
        searcher = choose_searcher(environment)
    except CragError as error:
        return PartStatus(part, "broken", name, why, str(error))
    if searcher is not None:
        return PartStatus(part, "ready", repr(searcher), why, "")
    if why:
        return PartStatus(part, "missing", "none", f"{why}=none", "")
    todo = f"{SEARCHER_HINT}, for a second source"
    return PartStatus(part, "missing", "none", "nothing is configured", todo)


def _reader(environment: Environment, *, has_searcher: bool) -> PartStatus:
    part, own = "pages", "pages of this machine too: CRAG_ALLOW_LOOPBACK"
    if not has_searcher:
        return PartStatus(part, "missing", "none", "read only what a web search finds", "")
    return PartStatus(part, "ready", "HTTP", own if environment.allow_loopback else "default", "")
