"""Documents on the page: a source at its lines, uploads, progress, removal, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

from tests.page.browser import LAST, ask, serving_guide, violations

pytestmark = pytest.mark.browser
Visit = Callable[..., Any]
ADA, MARY = "When was Ada Lovelace born?", "Where does Mary Somerville live?"


def write_documents(folder: Path) -> None:
    """Write a long text, Markdown and a PDF, each with one fact to ask for."""
    folder.mkdir()
    filling = [f"Line {number} speaks of kettles and of tea." for number in range(1, 120)]
    filling[80] = "Ada Lovelace was born in 1815 in London."
    (folder / "kettles.txt").write_text("\n".join(filling))
    (folder / "notes.md").write_text(
        "# Notes\n\nThe **engine** of Charles Babbage was built of brass.\n\n`a <b> c`\n"
    )
    canvas = Canvas(str(folder / "people.pdf"))
    for text in ("Nothing of note.", "Mary Somerville lives in Burntisland.", "The end."):
        canvas.drawString(72, 720, text)
        canvas.showPage()
    canvas.save()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an index of a folder of one's own; the address holds the token."""
    folder = tmp_path_factory.mktemp("own")
    write_documents(folder / "papers")
    with serving_guide(folder, documents=folder / "papers") as address:
        yield address


def opened(page: Any, question: str, place: str = "") -> Any:
    """Ask, open the source of the answer that is at `place`, and return its window."""
    ask(page, question)
    page.locator(f"{LAST} .sources li", has_text=place).first.locator(".opens").click()
    page.wait_for_selector("#source mark", timeout=60_000)
    return page.locator("#source")


def test_a_text_opens_at_the_cited_line_with_the_quotation(visit: Visit, own: str) -> None:
    page = visit(own)
    page.wait_for_selector("#library:not([hidden])")
    source = opened(page, ADA, "81")
    line = source.locator("li.focus")
    assert line.locator("mark").inner_text() == "Ada Lovelace was born in 1815 in London."
    assert line.get_attribute("value") == "81"
    assert "cited" in str(line.get_attribute("class"))
    assert source.locator("li[value='70'] mark, li[value='90'] mark").count() == 0
    page.wait_for_function(
        "() => { const {top, bottom} = document.querySelector('#source .focus')"
        ".getBoundingClientRect(); return top > 0 && bottom < innerHeight; }"
    )
    page.keyboard.press("Escape")
    assert page.locator("#source").is_hidden()


def test_a_pdf_opens_on_the_cited_page(visit: Visit, own: str) -> None:
    page = visit(own)
    page.wait_for_selector("#library:not([hidden])")
    source = opened(page, MARY)
    assert "page 2 of 3" in source.inner_text()
    assert source.locator(".focus mark").inner_text() == "Mary Somerville lives in Burntisland."
    assert 0 < marked_pixels(page) < 0.02
    assert violations(page) == []
    picture, text = (source.locator(name).bounding_box() for name in (".drawing", ".reading"))
    assert picture["x"] + picture["width"] <= text["x"]  # Beside it.
    source.locator("button >> text=Next").click()
    assert "page 3 of 3" in source.inner_text()
    assert "The end." in source.inner_text()
    assert source.locator("button >> text=Next").is_disabled()
    # What is quoted may begin on one page and end on another: text and picture agree on each.
    assert (marked_pixels(page) > 0) == (source.locator("mark").count() > 0)


def marked_pixels(page: Any) -> float:
    """Return the share of a page, once it is drawn, that is marked."""
    page.wait_for_selector("#source canvas", timeout=60_000)
    share: float = page.evaluate("""() => {
      const canvas = document.querySelector("#source canvas");
      const {width, height} = canvas;
      const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
      let marked = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at] === 255 && data[at + 1] === 232 && data[at + 2] === 120) marked += 1;
      }
      return marked / (width * height);
    }""")
    return share


def test_a_document_is_uploaded_asked_and_removed(visit: Visit, own: str, tmp_path: Path) -> None:
    page = visit(own)
    page.wait_for_selector("#library:not([hidden])")
    assert "3 documents" in page.inner_text("#library")
    seen = []
    page.on("request", lambda request: seen.append((request.method, request.url)))
    report = tmp_path / "quokkas.md"
    report.write_text("# Quokkas\n\nThe quokka lives on Rottnest Island.\n")
    page.set_input_files("#upload", report)
    page.wait_for_selector("#library >> text=4 documents")
    assert any(method == "PUT" and "/documents/quokkas.md" in url for method, url in seen)
    assert "1 document added." in page.inner_text("#adding")
    source = opened(page, "Where does the quokka live?")
    assert "Rottnest Island" in source.locator("mark").inner_text()
    page.keyboard.press("Escape")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#library [aria-label='Delete quokkas.md']")
    page.wait_for_selector("#library >> text=3 documents")
    ask(page, "Where does the quokka live now?")
    assert "Rottnest" not in page.inner_text(f"{LAST} .answer")


def test_what_is_no_document_is_refused_in_words(visit: Visit, own: str, tmp_path: Path) -> None:
    page = visit(own)
    page.wait_for_selector("#library:not([hidden])")
    fake = tmp_path / "fake.pdf"
    fake.write_text("no PDF at all")
    page.set_input_files("#upload", fake)
    page.wait_for_function("() => /PDF/.test(document.querySelector('#adding').textContent)")
    assert "added" not in page.inner_text("#adding")
    assert "3 documents" in page.inner_text("#library")
    large = tmp_path / "large.txt"
    large.write_bytes(b"tea " * 2**22 + b"!")
    page.set_input_files("#upload", large)
    page.wait_for_selector("#adding >> text=large.txt has more than 16,777,216 bytes.")
