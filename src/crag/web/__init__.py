"""The web, behind the Protocols in `crag.parts`: search services and what they have in common."""

from crag.web.searxng import SearxngSearcher
from crag.web.tavily import TavilySearcher
from crag.web.wikipedia import WikipediaSearcher

__all__ = ["SearxngSearcher", "TavilySearcher", "WikipediaSearcher"]
