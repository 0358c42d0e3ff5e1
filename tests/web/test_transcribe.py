"""Bodies of pages into titled paragraphs."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.errors import PageError
from crag.web.transcribe import LONGEST_PARAGRAPH, MOST_PARAGRAPHS, transcribe
from tests.web.site import PARAGRAPHS, page, pdf

URL = "https://www.hive-letter.example/bees"
HTML = "text/html; charset=utf-8"
FILLER = "The wheel of the mill turned twice a day whenever the pond behind the dam ran out. "


def read(html: str, url: str = URL) -> tuple[str, tuple[str, ...]]:
    return transcribe(html.encode(), HTML, url)


def read_as(content_type: str, body: bytes) -> tuple[str, tuple[str, ...]]:
    return transcribe(body, content_type, URL)


def problem_of(body: bytes, content_type: str) -> str:
    with pytest.raises(PageError) as caught:
        transcribe(body, content_type, URL)
    assert caught.value.name == URL
    return caught.value.problem


def test_an_article_without_its_surroundings() -> None:
    title, paragraphs = transcribe(page("article"), HTML, URL)
    assert title == "Cape Merrow Lighthouse"
    assert len(paragraphs) == 9
    assert paragraphs[0].startswith("Cape Merrow Lighthouse stands on the western end")
    assert "1926, Electric lamp with a generator; 1987, The last keeper" in paragraphs[7]
    assert "made in Paris.; The fog signal was" in paragraphs[4]
    text = " ".join(paragraphs)
    for other in ("script", "comment", "newsletter", "Copyright", "About us", "The keepers "):
        assert other not in text


def test_a_page_that_is_mostly_links() -> None:
    title, paragraphs = transcribe(page("navigation"), HTML, URL)
    assert title == "Salt roads | Old Ways"
    assert [paragraph[:16] for paragraph in paragraphs] == ["A salt road is a", "The journey took"]


@pytest.mark.parametrize(
    ("encoding", "header", "declared"),
    [
        ("latin-1", "text/html; charset=ISO-8859-1", ""),
        ("latin-1", "text/html", "<meta charset='latin-1'>"),
        ("latin-1", "text/html", ""),
        ("cp1252", "text/html; charset=rot13", "<meta charset=unicode_escape>"),
        ("utf-8", "text/html; charset=no-such-thing", "<meta charset=utf-16>"),
        ("utf-8-sig", "text/html; charset=latin-1", "<meta charset=latin-1>"),
        ("utf-16", "text/html; charset=utf-8", "<meta charset=utf-8>"),
    ],
)
def test_encodings(encoding: str, header: str, declared: str) -> None:
    html = page("accents").decode().replace("<head>", f"<head>{declared}")
    title, paragraphs = transcribe(html.encode(encoding), header, URL)
    assert title == "Le café de Noël"
    assert "préparé par la maîtresse de maison" in paragraphs[0]


def test_plain_text_and_markdown() -> None:
    body = "\n\n".join(PARAGRAPHS).encode()
    assert transcribe(body, "text/plain", URL) == ("", PARAGRAPHS)
    assert transcribe(body, "text/markdown; charset=utf-8", URL) == ("", PARAGRAPHS)
    assert transcribe(body, "", URL) == ("", PARAGRAPHS)
    assert read_as("", page("article")) == read_as(HTML, page("article"))
    assert read_as("", pdf()) == ("The tide mill", PARAGRAPHS)


@pytest.mark.parametrize(
    ("body", "content_type", "problem"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 9, "text/html", "unreadable"),
        (b"no PDF at all", "application/pdf", "unreadable"),
        (b"", HTML, "empty"),
        (b"   ", "text/plain", "empty"),
        (b"<p></p>", HTML, "empty"),
        (page("empty"), HTML, "empty"),
    ],
)
def test_what_cannot_be_read(body: bytes, content_type: str, problem: str) -> None:
    assert problem_of(body, content_type) == problem


def test_long_paragraphs_are_cut_at_sentence_ends_and_none_comes_twice() -> None:
    sentences = [f"Sentence number {number} says what the wheel did." for number in range(200)]
    html = f"<p>{' '.join(sentences)}</p><p>{FILLER}</p><p>{FILLER}</p><p>{'x' * 5000}</p>"
    _, paragraphs = read(html)
    assert len(set(paragraphs)) == len(paragraphs)
    assert max(map(len, paragraphs)) <= LONGEST_PARAGRAPH
    text = [paragraph for paragraph in paragraphs if "Sentence" in paragraph]
    assert " ".join(text) == " ".join(sentences)
    assert all(paragraph.endswith("did.") for paragraph in text)


TEXT = FILLER.encode()
HOSTILE = {
    "nested": b"<p>" + TEXT + b"</p>" + b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000,
    "closed without opening": b"<div>" * 100_000 + b"</span>" * 100_000 + TEXT,
    "inline": b"<b><i>" * 50_000 + TEXT,
    "tables": b"<table><tr><td>" * 30_000 + TEXT,
    "attribute": b"<p class='" + b"x" * 3_000_000 + b"'>" + TEXT,
    "attributes": b"<p " + b" ".join(b"a%d=1" % i for i in range(200_000)) + b">" + TEXT,
    "style": b"<p style='" + b"a:b;" * 500_000 + b"'>" + TEXT,
    "brackets": b"<" * 1_000_000,
    "ampersands": b"<p>" + b"&" * 1_000_000,
    "references": b"<p>" + b"&#x1b;&#0;&#xfffe;&#xd800;&#x110000;&#9999999999;" * 2_000 + TEXT,
    "nulls": b"<p>\0" + TEXT * 9 + b"\0</p>",
    "open comment": b"<!--" * 500_000,
    "open script": b"<p>" + TEXT + b"<script>" + b"x" * 3_000_000,
    "never closed": (b"<li><p>" + TEXT) * 5_000,
    "paragraphs": b"<p>" * 500_000,
    "entities": (
        b'<?xml version="1.0"?><!DOCTYPE h [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;">'
        b'<!ENTITY x SYSTEM "file:///etc/passwd">]><html><p>' + b"&b;&x;" * 1_000 + TEXT
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_end_soon(name: str) -> None:
    began = time.process_time()
    try:
        _, paragraphs = transcribe(HOSTILE[name], HTML, URL)
    except PageError as error:
        assert error.problem in {"empty", "unreadable"}  # noqa: PT017
    else:
        assert 0 < len(paragraphs) <= MOST_PARAGRAPHS
        assert "root:" not in " ".join(paragraphs)
    assert time.process_time() - began < 10


PIECES = [
    "<p>", "</p>", "<div hidden>", "</div>", "<table>", "<td>", "<li>", "<title>", "<svg><p>",
    "</svg>", "</body>", "</html>", "<!--", "-->", "<![CDATA[", "&nbsp;", "&#1;", "\x0b", "\ufffe",
    "\0", "<1>", "<a href='", "'", ">", FILLER, "<script>", "<frameset>", "<?pi", "<br>", "<p:q>",
]  # fmt: skip


@settings(deadline=None)
@given(
    st.one_of(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.text()),
    st.sampled_from(["utf-8", "utf-16", "cp1252"]),
    st.sampled_from(["text/html", "text/html; charset=utf-8", "", "text/plain", "text/markdown"]),
)
def test_anything_is_a_transcript_or_a_page_error(html: str, encoding: str, header: str) -> None:
    try:
        _, paragraphs = transcribe(html.encode(encoding, "replace"), header, URL)
    except PageError:
        return
    assert all(11 <= len(paragraph) <= LONGEST_PARAGRAPH for paragraph in paragraphs)
