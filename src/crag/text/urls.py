"""URLs of hits: one spelling for each page, and which of them are Wikipedia's."""

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

_PORTS = {"http": 80, "https": 443}
_TRACKING = re.compile(
    r"utm_.*|mc_[ce]id|_hs(enc|mi)|_gl|fbclid|gclid|gclsrc|gbraid|wbraid|dclid|msclkid|yclid|twclid"
    r"|ttclid|igshid|li_fat_id|srsltid|ref_src",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_PATH = "%/:@!$&'()*+,;=~"
_QUERY = _PATH + "?"
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_MOBILE = ".m.wikipedia.org"


class _Located(Protocol):
    @property
    def url(self) -> str: ...


_Found = TypeVar("_Found", bound=_Located)


def canonical(url: str) -> str:
    """Return one spelling for all URLs that lead to the same page.

    Scheme and host are in lower case (the host in ASCII, without Wikipedia's mobile label), the
    path starts and does not end with a slash, percent-encoding is as RFC 3986 normalises it, the
    query is sorted by name; default ports, fragments and parameters that track a visitor are gone.
    What cannot be read as an http(s) URL comes back stripped.
    """
    stripped = url.strip()
    try:
        parts = urlsplit(stripped)
        place = _place(parts)
    except ValueError:
        return stripped
    if place is None:
        return stripped
    query = _query(parts.query)
    return f"{parts.scheme}://{place}{_path(parts.path)}{'?' if query else ''}{query}"


def is_wikipedia(url: str) -> bool:
    """Say whether the URL leads to a host of wikipedia.org; a mention elsewhere does not count."""
    host = _host_of(url)
    return host == "wikipedia.org" or host.endswith(".wikipedia.org")


def distinct(hits: Iterable[_Found]) -> list[_Found]:
    """Return the first hit of each page, in order; one without an http(s) URL is left out."""
    by_page: dict[str, _Found] = {}
    for hit in hits:
        if _host_of(hit.url):
            by_page.setdefault(canonical(hit.url), hit)
    return list(by_page.values())


def _host_of(url: str) -> str:
    """Return the ASCII host of an http(s) URL, and nothing for anything else."""
    try:
        parts = urlsplit(url.strip())
        host = _host(parts) if parts.scheme in _PORTS else ""
    except ValueError:
        return ""
    return host if ":" in host or _NAME.fullmatch(host) else ""


def _place(parts: SplitResult) -> str | None:
    """Return user, host and port as they stand in a URL, or None where there is no web host."""
    host = _host(parts)
    if parts.scheme not in _PORTS or not host:
        return None
    user, at, _ = parts.netloc.rpartition("@")
    shown = f"[{host}]" if ":" in host else host
    port = parts.port
    return f"{user}{at}{shown}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")


def _host(parts: SplitResult) -> str:
    host = _ascii((parts.hostname or "").rstrip(".")).rstrip(".")
    if host.endswith(_MOBILE):
        return host.removesuffix(_MOBILE) + ".wikipedia.org"
    return host


def _ascii(host: str) -> str:
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host


def _path(path: str) -> str:
    """Return the path with its dots resolved, without a slash at the end."""
    kept: list[str] = []
    for segment in _escaped(path, _PATH).lstrip("/").split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept).strip("/")


def _query(query: str) -> str:
    fields = [_escaped(field.replace("+", "%20"), _QUERY) for field in query.split("&") if field]
    kept = (field for field in fields if not _TRACKING.fullmatch(field.partition("=")[0]))
    return "&".join(sorted(kept, key=lambda field: field.partition("=")[0]))


def _escaped(text: str, safe: str) -> str:
    """Normalise percent-encoding; a percent sign that encodes nothing is encoded itself."""
    return _ESCAPE.sub(_normal, quote(text, safe=safe, errors="replace"))


def _normal(escape: re.Match[str]) -> str:
    digits = escape[1]
    if digits is None:
        return "%25"
    character = chr(int(digits, 16))
    return character if _UNRESERVED.fullmatch(character) else f"%{digits.upper()}"
