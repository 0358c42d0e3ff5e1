"""Which URLs, hosts and IP addresses may be fetched: pure checks, without any network.

This protects the network that crag runs in: only public addresses are reached. Any port is allowed,
since a public service is public on all of its ports.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from crag.errors import PageError

LONGEST_URL = 4096
"""Characters of a URL."""
_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65535
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_INVISIBLE = r"\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_AUTHORITY = re.compile(
    rf"(?:\[([0-9a-fA-F:.]+)\]|([^\[\]:@%/?#\s{_INVISIBLE}]+))(?::([0-9]{{0,5}}))?"
)
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)")
_LOCAL_NAMES = (
    *("localhost", "local", "internal", "home.arpa", "localdomain"),
    *("lan", "intranet", "corp", "home", "private"),
)
_NOT_PUBLIC = {
    ip_network(block): kind
    for block, kind in (
        ("169.254.169.254/32", "a cloud's metadata address"),
        ("100.100.100.200/32", "a cloud's metadata address"),
        ("168.63.129.16/32", "a cloud's metadata address"),
        ("192.0.0.192/32", "a cloud's metadata address"),
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address shared behind a carrier's NAT"),
        ("127.0.0.0/8", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("172.16.0.0/12", "a private address"),
        ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "a private address"),
        ("198.18.0.0/15", "an address for benchmarks"),
        ("198.51.100.0/24", "an address for documentation"),
        ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
        ("fd00:ec2::254/128", "a cloud's metadata address"),
        ("fd20:ce::254/128", "a cloud's metadata address"),
        ("::/128", "an unspecified address"),
        ("::1/128", "a loopback address"),
        ("::ffff:0:0/96", "an IPv4-mapped address"),
        ("::/96", "an IPv4-compatible address"),
        ("64:ff9b:1::/48", "a NAT64 address of a private network"),
        ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"),
        ("ff00::/8", "a multicast address"),
        ("2001::/32", "a Teredo address"),
        ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"),
        ("2002::/16", "a 6to4 address"),
        ("3fff::/20", "an address for documentation"),
    )
}
"""Blocks of IANA's special-purpose registries, and metadata services. The first match names the
kind."""
_NAT64 = ip_network("64:ff9b::/96")
_UNICAST = ip_network("2000::/3")


class Target(NamedTuple):
    """A URL that passed the check, parsed once so that later code cannot parse it differently."""

    scheme: str
    host: str
    """Lower-case ASCII, without a trailing dot; an IPv6 address without brackets."""
    port: int
    url: str
    """Rebuilt from the parts; without a fragment."""

    @property
    def origin(self) -> str:
        """Scheme, host and port: the beginning of URLs of the same site."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def target_of(url: str) -> Target:
    """Check the text of one URL.

    Names are not resolved here; `refusal_of_host` checks the host.

    Raises:
        PageError: `refused`, with the reason in `message`.
    """
    parts = _split(url)
    matched = _AUTHORITY.fullmatch(parts.netloc)
    if matched is None:
        raise refused(url, _authority_problem(parts.netloc))
    address, name, port = matched.groups()
    host = _ipv6(url, address) if address else _name(url, name)
    number = int(port or _PORTS[parts.scheme])
    if not 0 < number <= _HIGHEST_PORT:
        raise refused(url, f"there is no port {number}")
    netloc = f"[{host}]" if address else host
    if number != _PORTS[parts.scheme]:
        netloc = f"{netloc}:{number}"
    rebuilt = urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))
    return Target(parts.scheme, host, number, rebuilt)


def redirected(source: Target, location: str) -> Target:
    """Check the target of a redirect, relative to the page that sent it.

    Raises:
        PageError: `refused`, also for a redirect from https to http.
    """
    try:
        target = target_of(urljoin(source.url, _clean(location)))
    except ValueError as error:
        raise refused(location, "it cannot be read as a URL") from error
    if source.scheme == "https" and target.scheme == "http":
        raise refused(target.url, "it redirects from https to http")
    return target


def refusal_of_host(host: str, *, allow_loopback: bool = False) -> str | None:
    """Return why `host`, an address or a name, is refused; None if nothing is known."""
    refusal = refusal_of_address if is_address(host) else _refusal_of_name
    return refusal(host, allow_loopback=allow_loopback)


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def refusal_of_address(text: str, *, allow_loopback: bool = False) -> str | None:
    """Return why an IP address must not be connected to; None for global unicast addresses.

    A NAT64 address (64:ff9b::/96) counts as the IPv4 address inside it, because IPv6-only networks
    reach every IPv4 site that way. All other embeddings are refused.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return "it leads to something that is not an IP address"
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "it leads to an address of one link"
    if address in _NAT64:
        return refusal_of_address(str(IPv4Address(int(address) & 0xFFFF_FFFF)))
    if allow_loopback and _is_loopback(address):
        return None
    kind = next((kind for block, kind in _NOT_PUBLIC.items() if address in block), None)
    if kind is None and not _is_public(address):
        kind = "an address that is not public"
    return kind and f"it leads to {kind}"


def _is_loopback(address: IPv4Address | IPv6Address) -> bool:
    return address in ip_network("127.0.0.0/8") or address == IPv6Address("::1")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and (address.version == 4 or address in _UNICAST)  # noqa: PLR2004


def _refusal_of_name(name: str, *, allow_loopback: bool) -> str | None:
    name = name.removesuffix(".").lower()
    local = any(name == suffix or name.endswith(f".{suffix}") for suffix in _LOCAL_NAMES)
    if allow_loopback and (name == "localhost" or name.endswith(".localhost")):
        return None
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return "its host is an IPv4 address in an unusual notation"
    return "its host is a name of the local network" if local or "." not in name else None


def _split(url: str) -> SplitResult:
    url = _clean(url)
    if len(url) > LONGEST_URL:
        raise refused(url[:100], f"it is longer than {LONGEST_URL} characters")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise refused(url, "it cannot be read as a URL") from error
    if parts.scheme not in _PORTS:
        raise refused(url, "only http and https are fetched")
    return parts


def _clean(url: str) -> str:
    """Refuse what parsers disagree about; surrounding spaces are removed."""
    url = url.strip(" ")
    if _FORBIDDEN.search(url):
        raise refused(repr(url[:100]), "it holds control characters or backslashes")
    return url


def _ipv6(url: str, text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError as error:
        raise refused(url, "its host is not an IPv6 address") from error


def _name(url: str, name: str) -> str:
    """Return a name, or a dotted IPv4 address, in its canonical form."""
    import idna

    try:
        host = name.lower() if name.isascii() else idna.encode(name, uts46=True).decode()
    except UnicodeError as error:  # idna's errors are of this kind.
        raise refused(url, "its host is not a valid name") from error
    host = host.removesuffix(".")
    if not _NAME.fullmatch(host):
        raise refused(url, "its host is not a valid name")
    if _NUMBER.fullmatch(host.rpartition(".")[2]) and not (name == host and _is_ipv4(host)):
        raise refused(url, "its host is an IPv4 address in an unusual notation")
    return host


def _is_ipv4(host: str) -> bool:
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def _authority_problem(netloc: str) -> str:
    if "@" in netloc:
        return "it holds a user name or password"
    return "its host or port cannot be read" if netloc else "it has no host"


def refused(url: str, reason: str) -> PageError:
    """Return the error that says why a URL or a host is not fetched."""
    return PageError(url, "refused", f"not fetched: {reason}")
