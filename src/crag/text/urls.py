"""URLs of hits: which of them lead to one page, and which to Wikipedia."""

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

_TRACKING = re.compile(
    r"utm_.*|mc_[ce]id|_hs(enc|mi)|_gl|fbclid|gclid|gclsrc|gbraid|wbraid|dclid|msclkid|yclid|twclid"
    r"|ttclid|igshid|li_fat_id|srsltid|ref_src",
    re.IGNORECASE,
)
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f.]*:[0-9a-f:.]+")
_MOBILE = ".m.wikipedia.org"


class _Located(Protocol):
    @property
    def url(self) -> str: ...


_Found = TypeVar("_Found", bound=_Located)


def canonical(url: str) -> str:
    """Return one spelling for all URLs that lead to the same page; empty if it is none of the web.

    Parameters are sorted by name; without Wikipedia's mobile label, fragments, and parameters that
    track a visitor. Only for comparing: a slash that was written as ``%2F`` is a slash in it.
    """
    import httpx

    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError):
        return ""
    host = parsed.raw_host.decode().rstrip(".").replace(_MOBILE, ".wikipedia.org")
    if parsed.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        return ""
    fields = parse_qsl(parsed.query.decode(), keep_blank_values=True)
    kept = sorted(
        (one for one in fields if not _TRACKING.fullmatch(one[0])), key=lambda one: one[0]
    )
    place = f"[{host}]" if ":" in host else host
    path = quote(unquote(parsed.path), errors="replace").rstrip("/")
    return f"{parsed.scheme}://{place}:{parsed.port or ''}{path}?{urlencode(kept)}"


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
