"""Web search: the search service and the page reader."""

from typing import Literal, get_args

from crag.errors import CragError, SearchError, SettingsError
from crag.factory.status import PartStatus
from crag.parts import PageReader, WebSearcher
from crag.runtime import entry_points
from crag.runtime.environment import DEFAULT_PAGE_CACHE, Environment
from crag.web import SearxngSearcher, TavilySearcher, WikipediaSearcher

SearchName = Literal["tavily", "wikipedia", "searxng", "none"]
SEARCHER_HINT = "set TAVILY_API_KEY or SEARXNG_URL, or CRAG_SEARCH=wikipedia"
"""How to get a searcher from the environment."""


def choose_searcher(environment: Environment) -> WebSearcher | None:
    """Return the web searcher, or None if none is configured.

    Nothing leaves the machine unless configured: Wikipedia needs no key, so it must be named.

    Raises:
        CragError: `CRAG_SEARCH` is not a known name, or the service's key or address is missing or
            wrong.
    """
    match search_name(environment)[0]:
        case "tavily":
            return _tavily(environment)
        case "wikipedia":
            return WikipediaSearcher(
                language=environment.wikipedia_language,
                base_url=environment.wikipedia_url,
                contact=environment.contact,
            )
        case "searxng":
            return _searxng(environment)
        case "none":
            return None
        case added:
            return entry_points.make("crag.searchers", added, WebSearcher)  # type: ignore[no-any-return]


def choose_reader(environment: Environment) -> PageReader:
    """Return the page reader with its cache on disk; the file opens on first use."""
    from crag.web.reader import HttpPageReader

    return HttpPageReader(allow_loopback=environment.allow_loopback, cache=environment.page_cache)


def search_name(environment: Environment) -> tuple[str, str]:
    """Return the name of the search service, such as none, and the variable that chose it.

    Raises:
        SettingsError: `CRAG_SEARCH` is not one of the names.
    """
    if environment.search is not None:
        wanted = environment.search.strip().lower()
        names = [*get_args(SearchName), *entry_points.names("crag.searchers")]
        for name in names:
            if name.lower() == wanted:
                return name, "CRAG_SEARCH"
        allowed = f"allowed are {', '.join(names)}"
        raise SettingsError("CRAG_SEARCH", environment.search, allowed)
    if environment.tavily_api_key is not None:
        return "tavily", "TAVILY_API_KEY"
    if environment.searxng_url is not None:
        return "searxng", "SEARXNG_URL"
    return "none", ""


def examine_web(environment: Environment) -> list[PartStatus]:
    """Describe the web search and the page reader; nothing is loaded or sent."""
    searcher = _searcher(environment)
    return [searcher, _reader(environment, has_searcher=searcher.state == "ready")]


def _tavily(environment: Environment) -> TavilySearcher:
    key = environment.tavily_api_key
    if key is None:
        raise SearchError("Tavily", "key", "CRAG_SEARCH=tavily needs a key: set TAVILY_API_KEY")
    return TavilySearcher(key.get_secret_value(), base_url=environment.tavily_base_url)


def _searxng(environment: Environment) -> SearxngSearcher:
    if environment.searxng_url is None:
        message = "CRAG_SEARCH=searxng needs the address of a server: set SEARXNG_URL"
        raise SearchError("SearXNG", "request", message)
    return SearxngSearcher(environment.searxng_url)


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
    part, cache = "pages", environment.page_cache
    if not has_searcher:
        return PartStatus(part, "missing", "none", "read only what a web search finds", "")
    own = "; pages of this machine too: CRAG_ALLOW_LOOPBACK" if environment.allow_loopback else ""
    chosen = "default" if cache == DEFAULT_PAGE_CACHE else "CRAG_PAGE_CACHE"
    return PartStatus(part, "ready", f"cache in {cache}", f"{chosen}{own}", "")
