"""What clients draw of an answer: no picture, no HTML, and no link but to what a strip holds."""

import html
import random
import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from crag.answering.citations import validate
from crag.answering.links import _parsers, prose_and_code, without_links
from crag.state import Citation, Source
from tests.repeating import times
from tests.torture.shapes import shape, shapes

EVIL = "http://evil.example/x"
KNOWN = "https://docs.example.org/a"

CONSTRUCTS = (
    "\tcode\tof a tab", "  - a\n\n\tb", "&nbsp; &amp; &#35; &#X22; &unknown;",
    '\\!\\"\\# \\a \\\\', "***\n---\n___", " - - -", "# one\n## two ##\n####### none",
    "one\n===\ntwo\n---", "    code\n\n    more", "a\n    no code", "```py\ncode\n```",
    "~~~~\n```\n~~~~", "````\n```\n````", "```\nopen\n\ntext", "> ```\n> a\n\nb",
    "- ```\n  a\n  ```", "<div>\n*a*\n</div>", "<!-- a -->\n\nb", "<?php a ?>",
    "<![CDATA[\na\n]]>", "<!DOCTYPE html>", "<pre>\na\n\n</pre>", "<a b='c' d>\nx\n</a>",
    "[foo]: /url 'title'\n\n[foo]", "[foo]: \n   /url  \n 'the\ntitle'\n\n[Foo]",
    "[foo]: <>\n\n[foo]", "[foo]\n\n[foo]: one\n[foo]: two", "# [foo]\n[foo]: /url\n> bar",
    "> [foo]: /url\n\n[foo]", "a  \nb\\\nc", "> # a\n> b\nlazy", "> > > deep",
    "1.  a\n\n    - b\n\n      c", "- a\n- b\n\n\n- c", "10) a\n11) b", "`a``b` ``c`d``",
    "` `` `", "`a\nb`", "*a `*`*", "[a `](b)`", '<b2 data="`">`', "*a* **b** ***c***",
    "_a_ __b__ a_b_c", "**a *b** c*", "*a [b*](c)", '[a](b "c")', "[a](<b c>)", "[a](b(c)d)",
    "[a](\\(b\\))", '[a](b&#38;c "&quot;")', "[a [b](c) d](e)", "![a [b](c)](d)", "[![a](b)](c)",
    '[a](b\n"c")', "[a][b]\n\n[b]: c", "[a][]\n\n[a]: b", "[a\\]](b)", "[a] (b)",
    '![a][b]\n\n[b]: c "d"', "![a]\n\n[a]: b", "!\\[a](b)", "\\![a](b)", "<http://a.example?b=c>",
    "<a+b:c>", "<mailto:a@b.example>", "<a.b@c.example>", "< http://a >",
    "<a/><b c = \"d\" e='f'/>", "<!-- a -- b -->", "a <?b?> c <!D e> <![CDATA[>&<]]>",
    "a<br>b<br/>", "| a | b |\n| - | :-: |\n| c \\| d | `e` |", "| a |\n| --- |\n> b",
    "~~a~~ ~b~", "www.example.com/a(b))", "http://a.example. (https://b.example/c)",
    "a.b+c@d.example", "- [ ] a\n- [x] b", "a[^1]\n\n[^1]: b",
    "setup.py, README.md and a.example/b?c", "It is so [1]. So is this [2], and [7].",
    "[1](p. 5) and [2]: the end", "See https://docs.example.org/a.",
)  # fmt: skip

PIECES = (
    f"![a]({EVIL})", f"[a]({EVIL})", f"<{EVIL}>", EVIL, "www.evil.example/x", "a@evil.com",
    "evil.com", f"[1]: {EVIL}\n", f"[foo]: {EVIL}", "[foo]", "![foo]", "[x][foo]", "[1]", "[9]",
    "`", "``", "```", "```\n", "\n```\n", "~~~\n", "<!--", "-->", "<b>", "<img src=x>", "\\",
    "&#96;", "&lt;", "&#91;", "[", "]", "(", ")", "![", "](", "|", "\n|---|---|\n",
    "\n| a | b |\n|--|--|\n", "> ", "- ", "    ", "\t", "\n", "\n\n", "# ", "*", "**", "_", "~~",
    "<br>", KNOWN, f"<{KNOWN}>", f"[p]({KNOWN})", "<div>\n", "</div>", "<?", "?>", "<![CDATA[",
    "]]>", "<script>", "//evil.com", "http&#58;//evil.com", "javascript:x", "[^1]:", "[^1]", "$",
    "'", '"', "é", "\u3002", "\xa0", "1. ", ":", "\\`", "\\[", "\r",
)  # fmt: skip


def mutated(seed: int) -> str:
    """Return a construct with up to six changes: pieces put in, characters taken out, lines cut."""
    chance = random.Random(seed)  # noqa: S311 - it is repeatable
    text = chance.choice(CONSTRUCTS)
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 6))
        put = chance.choice(PIECES) if chance.random() < 0.7 else chance.choice(CONSTRUCTS)
        text = text[:start] + (put + text[start:] if chance.random() < 0.8 else text[end:])
    return text


SOURCE = Source(id="1", title="", url="", position="")
AVAILABLE = [
    Citation(
        number=1,
        text=f"See {KNOWN}, it says, and README.md, git@known.example:me/x, https://known.example/a%20b.py.",
        source=SOURCE,
    ),
    Citation(number=2, text="x", source={**SOURCE, "url": "https://example.org/page"}),
]
ALLOWED = {
    KNOWN,
    "https://example.org/page",
    "http://README.md",
    "mailto:git@known.example",
    "https://known.example/a%20b.py",
}


def client(*, tables: bool, linkify: bool) -> MarkdownIt:
    """Return a parser as clients have it, that refuses no address."""
    parser = MarkdownIt("commonmark", {"linkify": linkify, "maxNesting": 100})
    parser.enable(["table", "strikethrough"] if tables else [])
    parser.enable("linkify" if linkify else [])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005
    return parser


LINKED = re.compile(r"[\[<@]|://|www|\.example|\.py|open")
CLIENTS = [client(tables=tables, linkify=on) for tables in (False, True) for on in (False, True)]


def drawn(answer: str) -> Iterator[str]:
    """Yield the pictures, tags and foreign addresses that a client finds in an answer."""
    for parser in CLIENTS:
        tokens = parser.parse(answer)
        while tokens:
            token = tokens.pop()
            tokens += token.children or []
            if token.type in {"image", "html_block"}:
                yield f"{token.type} {token.attrs or token.content}"
            if token.type == "html_inline" and token.content.lower() not in {"<br>", "<br/>"}:
                yield token.content
            if token.type == "link_open" and str(token.attrs["href"]).rstrip("*_~") not in ALLOWED:
                yield f"link {token.attrs['href']}"


FORMS = {
    "escaped backticks": f"\\`![a]({EVIL})\\`",
    "unpaired fences": f"a ``` b\n![a]({EVIL})\nc ````",
    "reference definitions": "So [1], ![a][b].\n\n[1]: //evil.example/x\n[b]: //evil.example/x",
    "entities in addresses": "![a][b] [b]\n\n[b]: h&#116;tp&colon;//evil.example/x",
    "backticks in comments": f"So <!-- ` -->![a]({EVIL})<!-- ` -->",
    "an address after a stroke": f"~~![a]({EVIL})~~//evil.example",
}


@pytest.mark.parametrize("said", FORMS.values(), ids=FORMS)
def test_what_once_came_through_is_not_drawn(said: str) -> None:
    assert [*drawn(said)]
    result = validate(said, AVAILABLE)
    assert [*drawn(result.answer)] == []


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (f"[Click]({EVIL} 'title') [1]", "Click [1]"),
        (f"So [1]({EVIL}) and ![2]({EVIL}).", "So [1] and [2]."),
        ("[1]: Yes.", "[1]\\: Yes."),
        (f"[1]: {KNOWN}\n\n[1] [2]", f"[1]\\: {KNOWN}\n\n[1] [2]"),
        (f"- [foo]: {EVIL} 'x'\n\n[foo]", "- [foo]\\: (link removed) 'x'\n\n[foo]"),
        (f"| a | `b |\n|---|---|\n| ![x]({EVIL}) | ` |", "| a | `b |\n|---|---|\n| x | ` |"),
        (f"- # [x\n  y]({EVIL}) z", None),
        ("List<String> and a<br>b", "List\\<String> and a<br>b"),
        ("<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)>"),
        (f"![![![a]({EVIL})](b)](c)", "a"),
        ("Run setup.py, as README.md says.", "Run `setup.py`, as README.md says."),
        ("As 163.com and _a.b.io/c_ say.", "As `163.com` and _`a.b.io/c`_ say."),
        ("1.In 12.Mai: a.b.read(), a.b.to_c.", "`1.In` 12.Mai: `a.b.read`(), a.b.to_c."),
        ("Write to a@b.example.", "Write to (link removed)."),
        (f"({KNOWN}). **{KNOWN}**", f"({KNOWN}). **{KNOWN}**"),
        (f"**a ({KNOWN})**: b", f"**a ({KNOWN})**: b"),
        ("See https://known.example/a%20b.py now.", "See https://known.example/a%20b.py now."),
        ("See https://evil.example/a%20b.py now.", "See (link removed) now."),
        ("Clone git@known.example:me/x.", "Clone git@known.example:me/x."),
        (f"{KNOWN}。And {KNOWN}[1]", f"<{KNOWN}>。And <{KNOWN}>[1]"),
        (f"“By {KNOWN}” [1], _{KNOWN}_…", f"“By <{KNOWN}>” [1], _<{KNOWN}>_…"),
        ("h&#116;tps://evil.example/a", None),
        (f"```\ncode {EVIL}\n\nSo [1].", f"```\ncode {EVIL}\n\nSo [1]."),
        (f"`curl {EVIL}`\n\n    curl {EVIL}", f"`curl {EVIL}`\n\n    curl (link removed)"),
        (f"[a]: {KNOWN}\n\n[^1]: b\n\n        ![x]({EVIL})", None),
    ],
)
def test_what_is_not_allowed_is_removed_and_all_else_stays(said: str, answer: str | None) -> None:
    got, _ = without_links(said, AVAILABLE)
    assert [*drawn(got)] == []
    if answer is not None:
        assert got == answer


@pytest.mark.parametrize("said", CONSTRUCTS)
def test_of_every_construct_nothing_is_drawn_that_no_strip_holds(said: str) -> None:
    answer, _ = without_links(said, AVAILABLE)
    assert [*drawn(answer)] == []
    if not LINKED.search(said):
        assert answer == said.strip()


def test_of_every_mutation_nothing_is_drawn_that_no_strip_holds() -> None:
    for seed in range(times(500, 20_000)):
        said = mutated(seed)
        answer = validate(said, AVAILABLE).answer
        assert [*drawn(answer)] == [], said
        assert without_links(answer, AVAILABLE)[0] == answer, said


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_of_any_pieces_nothing_is_drawn_that_no_strip_holds(pieces: list[str]) -> None:
    assert [*drawn(validate("".join(pieces), AVAILABLE).answer)] == []


@given(st.text("abc é。\n-*>#0123.,"))
def test_words_and_lists_are_left_as_they_were_written(said: str) -> None:
    answer, removed = without_links(said, AVAILABLE)
    assert removed == []
    assert answer.replace("`", "") == said.strip()


@pytest.mark.parametrize(
    "said",
    [
        ">" * 30 + f"![x]({EVIL})",
        "- " * 12 + f"![x]({EVIL})",
        "[ " * 15 + f"![a [b] c]({EVIL})",
        f"![a]({EVIL})\n" * 5000,
        "![" * 12 + f"a]({EVIL})" * 12,
    ],
    ids=["quotations", "lists", "brackets", "length", "pictures"],
)
def test_what_is_too_deep_or_too_long_to_parse_is_escaped(said: str) -> None:
    answer, removed = without_links(said, AVAILABLE)
    assert removed
    assert EVIL not in html.unescape(answer)
    assert "![" not in answer
    assert "](" not in answer


def test_a_hostile_answer_takes_no_time() -> None:
    without_links(CONSTRUCTS[0], AVAILABLE)
    pieces = (*PIECES[:: times(16, 4)], f"![a]({EVIL})", "a.com/(", "[[9]")
    hostile = [shape(100_000, piece) for piece in pieces]
    for said in [*hostile, *list(shapes(29_000))[:: times(24, 2)]]:
        start = time.thread_time()
        without_links(said, AVAILABLE)
        assert time.thread_time() - start < 2, said[:30]


def test_code_is_what_a_client_takes_for_it() -> None:
    assert prose_and_code("a `b` \\`c\\`\n\n```\nd\n```\n") == [
        "a ",
        "`b`",
        " \\`c\\`\n\n",
        "```\nd\n```",
        "\n",
    ]


def test_what_threads_share_is_compiled_before_they_do() -> None:
    for parser in _parsers.__wrapped__():
        for ruler in (parser.block.ruler, parser.inline.ruler, parser.inline.ruler2):
            assert ruler.__cache__
