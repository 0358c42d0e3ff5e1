"""Web search providers, behind the Protocol in `crag.parts`."""

from crag.web.tavily import TavilySearcher

__all__ = ["TavilySearcher"]
