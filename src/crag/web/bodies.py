"""Bodies of responses: supported types, and reading them within limits.

Decompression is done here and not by httpx, which decompresses a whole chunk from the network
before anyone can count its bytes: 64 kB may become 64 MB, and more with two encodings.
"""

import re
import zlib
from collections.abc import Callable
from contextlib import aclosing

import httpx

from crag.errors import PageError

READABLE = (
    "text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf",
)  # fmt: skip
ENCODINGS = "gzip, deflate"
"""The accepted encodings; responses in other ones are refused."""
_HTML = re.compile(rb"<(!doctype html|html|head|title|body|!--|meta|p|div|h1)\b", re.IGNORECASE)
_SNIFFED_BYTES = 1024
Decode = Callable[[bytes, int], bytes]
"""Takes a part of a body and the maximum number of bytes to return."""


class Allowance:
    """The byte budget of several pages together."""

    def __init__(self, most: int) -> None:
        self.left = most


class PageAllowance:
    """The bytes that one page spends of an allowance."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.spent = 0

    @property
    def left(self) -> int:
        """Bytes that all pages together may still spend."""
        return self._allowance.left

    def spend(self, url: str, number: int) -> None:
        """Take `number` bytes.

        Raises:
            PageError: `budget`, if fewer are left; smaller pages can still use them.
        """
        if number > self.left:
            raise PageError(url, "budget", "the bytes for all pages together are spent")
        self._allowance.left -= number
        self.spent += number


async def read_body(response: httpx.Response, url: str, most: int, share: PageAllowance) -> bytes:
    """Return the decompressed body.

    Raises:
        PageError: `too_large` beyond `most` bytes, compressed or not; `budget` if the budget of all
            pages is spent; `unreadable` if the compression is not as declared.
    """
    too_large = PageError(url, "too_large", f"larger than {most:,} bytes")
    decode = _decoder(response.headers.get("content-encoding", ""), url)
    if _declared(response) > most:
        raise too_large
    parts: list[bytes] = []
    received = size = 0
    async with aclosing(response.aiter_raw()) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            part = decode(chunk, min(most - size, share.left) + 1)
            received, size = received + len(chunk), size + len(part)
            if max(received, size) > most:
                share.spend(url, min(len(part), share.left))
                raise too_large
            share.spend(url, len(part))
            parts.append(part)
    return b"".join(parts)


def readable(content_type: str, url: str, types: tuple[str, ...]) -> None:
    """Check the content type from the server; a missing one is allowed.

    Raises:
        PageError: `content_type`.
    """
    kind = media_type(content_type)
    if kind and types and kind not in types:
        raise PageError(url, "content_type", f"the content type {kind[:80]!r} is not supported")


def sniffed(content_type: str, body: bytes, url: str) -> str:
    """Return the content type from the server, or guess it from the first bytes.

    Raises:
        PageError: `content_type`, if the bytes match no supported type.
    """
    if media_type(content_type):
        return content_type
    start = body[:_SNIFFED_BYTES].lstrip()
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    if _HTML.search(start):
        return "text/html"
    if b"\0" in start:
        raise PageError(url, "content_type", "without a content type, and not text")
    return "text/plain"


def media_type(content_type: str) -> str:
    """Return the type that the header names, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _declared(response: httpx.Response) -> int:
    length = response.headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _decoder(encoding: str, url: str) -> Decode:
    match encoding.strip().lower():
        case "" | "identity":
            return lambda data, _: data
        case "gzip" | "x-gzip" | "deflate":
            return _Inflate(url)
        case other:
            message = f"compressed as {other[:40]!r}, which was not requested"
            raise PageError(url, "unreadable", message)


class _Inflate:
    """Decompress gzip, zlib, and the deflate without a header that some servers send."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._begun = False

    def __call__(self, data: bytes, most: int) -> bytes:
        try:
            return self._decompressed(data, most)
        except zlib.error as error:
            raise PageError(self._url, "unreadable", "its compression is damaged") from error

    def _decompressed(self, data: bytes, most: int) -> bytes:
        if self._inflate.eof:  # Ignore anything after the compressed data.
            return b""
        begun, self._begun = self._begun, True
        try:
            return self._inflate.decompress(data, most)
        except zlib.error:
            if begun:
                raise
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(data, most)
