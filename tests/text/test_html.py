"""HTML, as pages of the web and as files of an index: the same text is hidden in both."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crag.text.blocks import text_of
from crag.text.html import read_html, read_page
from crag.text.visible import MOST_ELEMENTS
from tests.documents.reading import cases

SHOWN = dict(cases(Path(__file__).with_name("html.txt")))
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


@pytest.mark.parametrize(("written", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_file_is_read_as_it_is_seen(written: str, shown: str) -> None:
    assert as_file(written) == shown


def test_a_cell_over_thousands_of_columns_is_cut() -> None:
    far = "<td colspan=999999999 rowspan=0>a<tr><td colspan=x>b"
    assert as_file(f"<table>{far}</table>").count("|") < 500


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
        "<!-- Secret -->", "<script>'Secret'</script>", "<style>Secret</style>",
        "<template><p>Secret</p></template>", "<noscript>Secret</noscript>",
        "<svg><text>Secret</text></svg>", "<dialog>Secret</dialog>", "<textarea>Secret</textarea>",
        "<img alt='Secret' title='Secret'>", "<meta name='description' content='Secret'>",
    ],
)  # fmt: skip
def test_elements_that_no_browser_shows(read: Read, hidden: str) -> None:
    text = read(f"<p>{FILLER * 3}</p>{hidden}<p>{FILLER * 3}</p>")
    assert FILLER.strip() in text
    assert "Secret" not in text


@both
@pytest.mark.parametrize("style", SHOWING)
def test_what_is_not_hidden(read: Read, style: str) -> None:
    assert read(f"<div {style}><p>{FILLER * 3}</p></div>") == (FILLER * 3).strip()


def test_a_file_is_read_to_its_end() -> None:
    rows = "".join(f"<p>Row <u>{number}</u></p>" for number in range(MOST_ELEMENTS))
    assert as_file(rows).endswith(f"Row {MOST_ELEMENTS - 1}")
    long = "word " * 250_000
    assert as_file(f"<p>{long}</p><p>the end</p>").endswith("the end")


def test_paragraphs_and_lists_within_a_quotation_stay_apart() -> None:
    quoted = f"<p>{FILLER}</p><ul><li>a wheel</li><li>a dam</li></ul>"
    _, found = read_html(f"<article><blockquote>{quoted}</blockquote><p>{FILLER * 4}</p></article>")
    assert found == [FILLER.strip(), "a wheel; a dam", (FILLER * 4).strip()]


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
