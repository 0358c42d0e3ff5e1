"""HTML, as pages of the web and as files of an index: the same text is hidden in both."""

from collections.abc import Callable

import pytest

from crag.errors import ContentError
from crag.text.blocks import text_of
from crag.text.html import read_html, read_page
from crag.text.visible import MOST_CHARACTERS, MOST_ELEMENTS
from tests.web.site import page

FILLER = "The wheel of the mill turned twice a day whenever the pond behind the dam ran out. "
HIDING = [
    "hidden",
    "aria-hidden=' TRUE '",
    "style='display : none !important'",
    "style='DISPLAY:NONE'",
    "style='display:/* x */none'",
    "style='d\\69splay:none'",
    "style='visibility:collapse'",
    "style='font-size:0.5px'",
    "style='opacity:.01'",
    "style='height:0;overflow:hidden'",
    "style='text-indent:-9999px'",
    "style='position:fixed;top:-200em'",
    "style='position:absolute;clip:rect(0,0,0,0)'",
    "style='clip-path:inset(100%)'",
    "style='transform:scale(0)'",
]
SHOWING = [
    "style='color:white'",
    "style='background:url(dark.png);color:#fff'",
    "style='height:0'",
    "style='opacity:0.9;font-size:small;color:inherit;background:inherit'",
    "style='color:rgb(300);x;:;;top:-5px'",
    "aria-hidden=false",
]
Read = Callable[[str], str]


def as_web_page(html: str) -> str:
    return " ".join(read_html(html)[1])


def as_file(html: str) -> str:
    return text_of(read_page(html).blocks)


both = pytest.mark.parametrize("read", [as_web_page, as_file])


@both
@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("element", ["p", "div"])
def test_hidden_elements_with_all_within_them(read: Read, hiding: str, element: str) -> None:
    seen = f"<p>{FILLER * 3}</p>"
    text = read(f"{seen}<{element} {hiding}><b>{FILLER} Secret.</b></{element}>{seen} end")
    assert FILLER.strip() in text
    assert "Secret" not in text


@both
@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- Secret -->",
        "<script>'Secret'</script>",
        "<style>Secret</style>",
        "<template><p>Secret</p></template>",
        "<noscript>Secret</noscript>",
        "<svg><text>Secret</text></svg>",
        "<dialog>Secret</dialog>",
        "<textarea>Secret</textarea>",
        "<img alt='Secret' title='Secret'>",
        "<meta name='description' content='Secret'>",
    ],
)
def test_elements_that_no_browser_shows(read: Read, hidden: str) -> None:
    text = read(f"<p>{FILLER * 3}</p>{hidden}<p>{FILLER * 3}</p>")
    assert FILLER.strip() in text
    assert "Secret" not in text


@both
def test_a_page_with_injected_instructions(read: Read) -> None:
    text = read(page("injected").decode())
    assert "HIDDEN" not in text
    assert "Its orbit brings it back" in text


@both
@pytest.mark.parametrize("style", SHOWING)
def test_what_is_not_hidden(read: Read, style: str) -> None:
    assert read(f"<div {style}><p>{FILLER * 3}</p></div>") == (FILLER * 3).strip()


def test_a_file_is_read_to_its_end() -> None:
    rows = "".join(f"<p>Row <u>{number}</u></p>" for number in range(MOST_ELEMENTS))
    assert as_file(rows).endswith(f"Row {MOST_ELEMENTS - 1}")
    long = "word " * (MOST_CHARACTERS // 4)
    assert as_file(f"<p>{long}</p><p>the end</p>").endswith("the end")


def test_a_file_that_nests_too_deep_to_be_read_is_refused() -> None:
    with pytest.raises(ContentError, match=r"nest deeper than 3,000 levels: save it as text"):
        as_file("<div>" * 5_000 + "the end")


def test_blocks_headings_and_cells() -> None:
    text = as_file(
        "<h1>Mills</h1>Before<p>One<br>line<br><br>another</p>after<hr>"
        "<h3>Wheels </h3><table><tr><th>kind<th>size<tr><td>under<b>shot</b><td>4 m</table>"
        "<nav>Menu</nav>tail<form>Search</form><dl><dt>race<dd>its water</dl>"
    )
    assert text.split("\n\n") == [
        "# Mills", "Before", "One  \nline", "another", "after", "### Wheels",
        "| kind | size |\n| --- | --- |\n| under**shot** | 4 m |", "tail", "- **race**: its water",
    ]  # fmt: skip


def test_code_of_a_file_keeps_its_lines() -> None:
    text = as_file(
        "<p>Run</p><pre><code>a:\n\n\n  b = `c`</code>\n\n</pre>then<pre>```\n</pre><pre> </pre>"
    )
    assert text == "Run\n\n```\na:\n\n\n  b = `c`\n```\n\nthen\n\n````\n```\n````"


def test_paragraphs_and_lists_within_a_quotation_stay_apart() -> None:
    quoted = f"<p>{FILLER}</p><ul><li>a wheel</li><li>a dam</li></ul>"
    _, found = read_html(f"<article><blockquote>{quoted}</blockquote><p>{FILLER * 4}</p></article>")
    assert found == [FILLER.strip(), "a wheel; a dam", (FILLER * 4).strip()]


@pytest.mark.parametrize(
    ("attributes", "url"),
    [
        ("rel='canonical' href='https://example.org/a'", "https://example.org/a"),
        ("rel='Canonical nofollow' href='http://example.org/a'", "http://example.org/a"),
        ("rel=canonical href='/a'", ""),
        ("rel=canonical href='javascript:x'><link rel=canonical href='http://a/'", "http://a/"),
        ("rel=icon href='https://example.org/a'", ""),
        ("rel=canonical href='http://a/" + 500 * "b" + "'", "http://a/" + 500 * "b"),
        ("rel=canonical href='http://a/" + 5000 * "b" + "'", ""),
    ],
)
def test_the_address_that_a_page_names(attributes: str, url: str) -> None:
    assert read_page(f"<title>A <b>b</b></title><link {attributes}><p>x").url == url


@pytest.mark.parametrize("html", ["", "<", "<!-- x", "\0", "<p>", "plain"])
def test_any_text_is_a_page(html: str) -> None:
    assert read_page(html).title == ""


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<ol start=9><li>Open it.<li><p>Type:</p><pre>x\n\ny</pre><p>Wait.</p></ol><p>End.</p>",
         "9. Open it.\n10. Type:\n\n    ```\n    x\n\n    y\n    ```\n\n    Wait.\n\nEnd."),
        ("<ul><li>a<table><tr><th>n<tr><td>1</table><li>b<ol><li>c</ol></ul>",
         "- a\n\n  | n |\n  | --- |\n  | 1 |\n- b\n  1. c"),
        ("<ul><li><h2>News</h2><p>It rains.</p></li><li>a</li></ul><li>lost</li>",
         "## News\n\nIt rains.\n\na\n\nlost"),
        ("<ol start=x><li>a</li></ol><ol reversed><li>b</li></ol>", "1. a\n\n1. b"),
        ("<dl><dt>-a</dt><dt>--all</dt><dd><p>All.</p><pre>x</pre></dd><dd>Or not.</dd></dl>End.",
         "- **-a**, **--all**: All.\n\n  ```\n  x\n  ```\n\n  Or not.\n\nEnd."),
        ("<dl><dt>-a<dd>One.<dl><dt>b<dd>two</dl><dt>-c<dd>Three.</dl>",
         "- **-a**: One.\n  - **b**: two\n- **-c**: Three."),
        ("<dl><dd>lost<dt><h3>n</h3><dd>m<dt>a</dt><div><dt>b<dd>c</div></dl>",
         "- lost\n- **n**: m\n- **a**:\n- **b**: c"),
    ],
)  # fmt: skip
def test_an_item_has_its_number_and_holds_its_blocks(html: str, text: str) -> None:
    assert as_file(html) == text


def test_cells_over_several_rows_and_columns_keep_the_others_in_their_columns() -> None:
    table = (
        "<tr><th rowspan=2>Mill<th colspan=2>Days<th rowspan=2>Notice<tr><th>Paid<th>Unpaid"
        "<tr><td>Old<td>5<td>7<td rowspan=2>None<tr><td>New<td>1<td>0<tr><td>Last<td>2<td>3<td>One"
    )
    assert as_file(f"<table>{table}</table>").splitlines() == [
        "| Mill | Days Paid | Days Unpaid | Notice |", "| --- | --- | --- | --- |",
        "| Old | 5 | 7 | None |", "| New | 1 | 0 | None |", "| Last | 2 | 3 | One |",
    ]  # fmt: skip
    far = "<td colspan=999999999 rowspan=0>a<tr><td colspan=x>b"
    assert as_file(f"<table>{far}</table>").count("|") < 500


def test_lists_in_the_cells_of_a_table_with_a_head_stay_in_their_row() -> None:
    lists = "<ul><li>bed<li>desk, <b>large</b></ul><td>For<ol><li>Ada<li>Ben<ul><li>hers</ul></ol>"
    table = f"<tr><td>Blue<td>{lists}</table>"
    head = "<tr><th>Room<th>Has<th>Use"
    assert as_file(f"<table>{head}{table}").splitlines() == [
        "| Room | Has | Use |",
        "| --- | --- | --- |",
        "| Blue | • bed • desk, **large** | For 1. Ada 2. Ben • hers |",
    ]


def test_what_serves_to_find_or_use_a_page_is_no_text() -> None:
    article = (
        "<h2>Mills<a href='#mills'>¶</a></h2><ul><li><a href='#a'>A</a><ol><li><a href='#b'>B</a>"
        "</ol><li><a href='#c'>C</a></ul><dl><dt><a href='#a'>A</a></dt><dd><dl><dt>"
        "<a href='#b'>B</a></dt></dl></dd><dt><a href='#c'>C</a></dt></dl>"
        "<p>See <a href='#a'>A</a>.<div><button>Copy</button></div>"
        "<pre>run</pre><h3><button aria-expanded=true>Why?</button></h3><p>So."
    )
    read = "## Mills\n\nSee A.\n\n```\nrun\n```\n\n### Why?\n\nSo."
    around = "<div class='x cookie-consent'>We use cookies</div><div role=search>Find</div>"
    assert as_file(f"{around}{article}") == read
    main = f"<header>Site</header>{around}<main>{article}</main><footer>© Us</footer>"
    assert as_file(main) == read
    assert as_file("<p>Site<main></main><p>End") == "Site\n\nEnd"
    beside = f"<main><p>Search</p></main>{article}"
    assert as_file(beside).endswith(read)
    assert as_file(beside).startswith("Search")


@pytest.mark.parametrize(
    "frame",
    [
        "<div class='navheader'><table><tr><th>Dams<tr><td><a>Prev</a><td><a>Up</a></table></div>",
        "<div class=navfooter><table><tr><td><a>Prev</a> <tr><td>Mills</table></div>",
        "<ul class=docnav><li class=previous><a><strong>Prev</strong>8.7. Dams</a></ul>",
        "<div class='nav-panel'><p>Next: <a>Dams</a>, Up: <a>Mills</a> [<a>X</a>]</p></div>",
        "<div class=toc><p>Contents</p><dl class=toc><dt><a href=a.html>Dams</a></dl></div>",
        "<div class=nosearch><div class=tagline>Small. Fast.<br>Choose any three.</div></div>",
        "<div class='toctree-wrapper compound'><ul><li><a>Dams</a></ul></div>",
        "<div class=indexdiv><dl><dt>dam, <a>Dams</a></dl></div>",
        "<table class='indextable modindextable'><tr><td><a>dam</a></table>",
        "<div><div><a href='#a'>1. A</a></div>\n <p><a href='#b'>B</a><p><a href='#c'>C</a></div>",
        "<div><ul><li><a href=/>Home</a><li><a href=/docs>Docs</a><li><a>News</a></ul></div>",
    ],
)  # fmt: skip
def test_what_leads_to_other_pages_of_a_manual_is_no_text(frame: str) -> None:
    assert as_file(f"{frame}<h1>Wheels</h1><p>{FILLER}") == f"# Wheels\n\n{FILLER.strip()}"


def test_lists_of_links_that_a_page_consists_of_are_text() -> None:
    links = "<ul><li><a>Wheels</a><li><a>Dams</a><li><a>Ponds</a></ul>"
    assert as_file(links) == "- Wheels\n- Dams\n- Ponds"
    assert as_file(f"<h1>Mills</h1>{links}") == "# Mills\n\n- Wheels\n- Dams\n- Ponds"
    assert as_file("<h2 class=toc>Mills</h2>") == "## Mills"  # Listed in the contents, not one.


@pytest.mark.parametrize(
    ("named", "headings", "title"),
    [
        ("wheels — All of them — Mills 3.2 documentation", "<h1>wheels — All of them</h1>",
         "wheels — All of them"),
        ("Wheels | Mills", f"<h1>Mills</h1><main><h1>Wheels<a href='#w'>¶</a></h1>{FILLER}</main>",
         "Wheels"),
        ("Wheels of mills | Mills", "<h1>Wheels</h1>", "Wheels of mills | Mills"),
        ("Mills | Wheels", "<h1>Mills</h1><h1>Wheels</h1>", "Mills | Wheels"),
        ("Mills: Wheels", "<h1>Wheels</h1>", "Mills: Wheels"),
        ("Wheels", "<h1>Wheels</h1>", "Wheels"),
    ],
)  # fmt: skip
def test_the_title_of_a_file_is_its_heading_without_the_site(
    named: str, headings: str, title: str
) -> None:
    assert read_page(f"<title>{named}</title>{headings}<p>{FILLER}").title == title


def test_what_follows_a_note_belongs_to_the_section_around_it() -> None:
    note = "<div class=note><h3 class=title>Note</h3><p>It floods.</p></div>"
    assert as_file(f"<h2>Wheels</h2>{note}<p>It turns.") == (
        "## Wheels\n\nNote: It floods.\n\nIt turns."
    )
    of_sphinx = "<div class=note><p class='admonition-title'>Note</p><p>It floods.</div>"
    assert as_file(f"{of_sphinx}<p class=note>It turns.") == "Note: It floods.\n\nIt turns."
    assert as_file(f"<dl><dt>race<dd>{note}<p>Water.</p></dl>") == (
        "- **race**: Note: It floods.\n\n  Water."
    )


@pytest.mark.parametrize(
    "mark",
    [
        "<a class='footnote-reference brackets' href='#f' role=doc-noteref>2</a>",
        "<a href='#ftn.f' class=footnote><sup class=footnote>[2]</sup></a>",
        "<sup><a class=footnote-ref href='#f'>2</a></sup>",
    ],
)
def test_marks_of_footnotes_are_no_text(mark: str) -> None:
    assert as_file(f"<p>It takes 30 minutes {mark}.<p>[2] Or more.") == (
        "It takes 30 minutes .\n\n[2] Or more."
    )


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>up to 2<sup><small>31</small></sup>-1, O(N<sup>2</sup>), 10<sup>−9</sup>",
         "up to 2^31-1, O(N^2), 10^−9"),
        ("<p>in 1999<sup><a href='#n'>2</a></sup>, 1998<a><sup>3</sup></a>, so<sup>4</sup>",
         "in 19992, 19983, so4"),
        ("<p>the 5<sup>th</sup>", "the 5th"),
    ],
)  # fmt: skip
def test_powers_of_numbers_are_told_from_their_digits(html: str, text: str) -> None:
    assert as_file(html) == text
