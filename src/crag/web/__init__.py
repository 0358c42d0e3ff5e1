"""Web search and page reading, behind the Protocols in `crag.parts`."""

from crag.web.searchers import SearxngSearcher, TavilySearcher, WikipediaSearcher

__all__ = ["SearxngSearcher", "TavilySearcher", "WikipediaSearcher"]
