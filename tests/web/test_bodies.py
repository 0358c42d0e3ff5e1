"""Bodies within limits, whatever their compression, and the content types that are read."""

import gzip
import zlib
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from crag.errors import PageError
from crag.web.bodies import READABLE, Allowance, PageAllowance, read_body, readable, sniffed

TEXT = b"The tide mill ground barley. " * 200
URL = "http://example.org/"


class Parts(httpx.AsyncByteStream):
    def __init__(self, parts: Sequence[bytes]) -> None:
        self.parts, self.taken = parts, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            self.taken += 1
            yield part


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


async def read(
    parts: Sequence[bytes], most: int = 100_000, left: int = 10**9, **headers: str
) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx.Response(200, headers=named, stream=Parts(parts))
    return await read_body(response, URL, most, PageAllowance(Allowance(left)))


async def problem(parts: Sequence[bytes], **options: object) -> str:
    with pytest.raises(PageError) as caught:
        await read(parts, **options)  # type: ignore[arg-type]
    assert caught.value.url == URL
    return caught.value.problem


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("X-GZIP", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT) + b"what follows is no part of it"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
    ],
)
@pytest.mark.parametrize("size", [100, 1 << 20])
async def test_encodings(encoding: str, body: bytes, size: int) -> None:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    assert await read(parts, content_encoding=encoding) == TEXT


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "nonsense"])
async def test_encodings_that_were_not_asked_for(encoding: str) -> None:
    assert await problem([TEXT], content_encoding=encoding) == "unreadable"


@pytest.mark.parametrize("body", [b"\xffno gzip at all", gzip.compress(TEXT)[:20] + b"\xff" * 50])
async def test_damaged_compression(body: bytes) -> None:
    assert await problem([body], content_encoding="gzip") == "unreadable"


@pytest.mark.parametrize(
    ("encoding", "packed"), [("deflate", zlib.compress(TEXT)), ("gzip", gzip.compress(TEXT))]
)
async def test_compression_whose_checksum_is_wrong(encoding: str, packed: bytes) -> None:
    parts = [packed[:-8], packed[-8:-4], b"\0\0\0\0"]
    with pytest.raises(PageError, match="its compression is damaged"):
        await read(parts, content_encoding=encoding)


async def test_exactly_the_limit_passes() -> None:
    assert len(await read([b"x" * 60, b"x" * 40], most=100)) == 100
    assert await problem([b"x" * 60, b"x" * 41], most=100) == "too_large"
    packed = gzip.compress(b"x" * 100)
    assert len(await read([packed], most=100, content_encoding="gzip")) == 100
    assert await problem([packed], most=99, content_encoding="gzip") == "too_large"


async def test_a_declared_length_ends_it_before_the_body() -> None:
    stream = Parts([b"x"])
    response = httpx.Response(200, headers={"content-length": "101"}, stream=stream)
    with pytest.raises(PageError, match="larger than 100 bytes"):
        await read_body(response, URL, 100, PageAllowance(Allowance(1000)))
    assert stream.taken == 0


@pytest.mark.parametrize("length", ["-5", "many", "5, 5", "", "٣"])
async def test_a_length_that_is_none_is_not_believed(length: str) -> None:
    headers = [(b"content-length", length.encode())]
    response = httpx.Response(200, headers=headers, stream=Parts([b"text"]))
    assert await read_body(response, URL, 100, PageAllowance(Allowance(1000))) == b"text"


@pytest.mark.parametrize("wrap", [gzip.compress, zlib.compress, raw_deflate])
async def test_a_bomb_is_never_inflated_beyond_the_limit(wrap: object) -> None:
    bomb = wrap(bytes(10_000_000))  # type: ignore[operator]
    encoding = "gzip" if wrap is gzip.compress else "deflate"
    share = PageAllowance(Allowance(10**9))
    response = httpx.Response(200, headers={"content-encoding": encoding}, stream=Parts([bomb]))
    with pytest.raises(PageError, match="larger than"):
        await read_body(response, URL, 10_000, share)
    assert share.spent == 10_001  # What was inflated counts, although it is thrown away.


async def test_compressed_bytes_without_content_end_too() -> None:
    empty_blocks = [b"x\x9c", *[b"\0\0\0\xff\xff"] * 3000]
    assert await problem(empty_blocks, most=5000, content_encoding="deflate") == "too_large"


async def test_pages_share_an_allowance() -> None:
    allowance = Allowance(150)
    first, second = PageAllowance(allowance), PageAllowance(allowance)
    await read_body(httpx.Response(200, stream=Parts([b"x" * 100])), URL, 1000, first)
    with pytest.raises(PageError) as caught:
        await read_body(
            httpx.Response(200, stream=Parts([b"x" * 40, b"x" * 11])), URL, 1000, second
        )
    assert caught.value.problem == "budget"
    assert (first.spent, second.spent, allowance.left) == (100, 40, 10)


async def test_the_allowance_bounds_what_is_inflated() -> None:
    body = gzip.compress(bytes(50_000))
    assert await problem([body], left=100, content_encoding="gzip") == "budget"


@pytest.mark.parametrize("content_type", ["text/html", "Text/HTML; charset=x", "", *READABLE])
def test_types_that_are_read(content_type: str) -> None:
    readable(content_type, URL, READABLE)


@pytest.mark.parametrize("content_type", ["image/png", "application/json", "text/htmlx", "x"])
def test_other_types_are_not(content_type: str) -> None:
    with pytest.raises(PageError) as caught:
        readable(content_type, URL, READABLE)
    assert caught.value.problem == "content_type"
    readable(content_type, URL, ())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"%PDF-1.7 \0", "application/pdf"),
        (b"\n <!DOCTYPE html><p>", "text/html"),
        (b"\xef\xbb\xbf<html lang=en>", "text/html"),
        (b"Words of a text. 1 < 2", "text/plain"),
        (b"", "text/plain"),
    ],
)
def test_a_missing_type_is_guessed(body: bytes, content_type: str) -> None:
    assert sniffed("", body, URL) == content_type
    assert sniffed("text/html; charset=x", body, URL) == "text/html; charset=x"


def test_what_looks_like_nothing_is_not_read() -> None:
    with pytest.raises(PageError) as caught:
        sniffed("", b"\x89PNG\r\n\0\0", URL)
    assert caught.value.problem == "content_type"
