"""Web search and page reading, behind the Protocols in `crag.parts`."""

from crag.web.searxng import SearxngSearcher
from crag.web.tavily import TavilySearcher
from crag.web.wikipedia import WikipediaSearcher

__all__ = ["SearxngSearcher", "TavilySearcher", "WikipediaSearcher"]
