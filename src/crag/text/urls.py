"""URLs of hits: which of them lead to one page, and which to Wikipedia."""

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

from w3lib.url import canonicalize_url

_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f.]*:[0-9a-f:.]+")
_MOBILE = ".m.wikipedia.org"


class _Located(Protocol):
    @property
    def url(self) -> str: ...


_Found = TypeVar("_Found", bound=_Located)


def canonical(url: str) -> str:
    """Return one spelling for all URLs that lead to the same page; empty if it is none of the web.

    Parameters are sorted; without Wikipedia's mobile label and fragments. Only for comparing.
    """
    import httpx

    try:
        parsed = httpx.URL(canonicalize_url(url.strip()))
    except (httpx.InvalidURL, ValueError):
        return ""
    host = parsed.raw_host.decode().rstrip(".").replace(_MOBILE, ".wikipedia.org")
    if parsed.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        return ""
    place = f"[{host}]" if ":" in host else host
    path, _, query = parsed.raw_path.decode().partition("?")
    return f"{parsed.scheme}://{place}:{parsed.port or ''}{path.rstrip('/')}?{query}"


def is_wikipedia(url: str) -> bool:
    """Say whether the URL leads to a host of wikipedia.org; a mention elsewhere does not count."""
    host = canonical(url).partition("://")[2].partition(":")[0]
    return host == "wikipedia.org" or host.endswith(".wikipedia.org")


def distinct(hits: Iterable[_Found]) -> list[_Found]:
    """Return the first hit of each page, in order; one without an http(s) URL is left out."""
    by_page: dict[str, _Found] = {}
    for hit in hits:
        if page := canonical(hit.url):
            by_page.setdefault(page, hit)
    return list(by_page.values())
