"""Web search and page reading, behind the Protocols in `crag.parts`."""

from crag.web.searchers import FunctionSearcher, SearxngSearcher, TavilySearcher, WikipediaSearcher

__all__ = ["FunctionSearcher", "SearxngSearcher", "TavilySearcher", "WikipediaSearcher"]
