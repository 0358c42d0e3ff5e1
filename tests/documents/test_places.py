"""A citation from a presentation, a PDF or a book names the slide, page or part it is from."""

import re
from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from langchain_core.documents import Document
from pptx import Presentation

from crag.correction.provenance import source_of, source_within
from crag.documents.chunks import split
from crag.documents.loaders import load
from crag.documents.sources import SourceText
from crag.text.places import line_places, lines_written
from tests.documents.reading import make_pdf, write_epub, write_notebook

NUMBER = 50


def sentence(number: int) -> str:
    return f"Lighthouse {number} stands on rock {number * 7}."


def write_slides(path: Path) -> None:
    slides = Presentation()
    for number in range(1, NUMBER + 1):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = f"Light {number}"
        slide.placeholders[1].text = f"{sentence(number)}\nIt was built long ago."
    slides.save(str(path))


def write_pages(path: Path) -> None:
    make_pdf(path, [f"{sentence(number)} It is white." for number in range(1, NUMBER + 1)])


def write_book(path: Path) -> None:
    chapters = [
        f"<h1>Light {number}</h1><p>{sentence(number)}</p><p>It burns oil.</p>"
        for number in range(1, NUMBER + 1)
    ]
    write_epub(path, chapters)


def write_cells(path: Path) -> None:
    texts = [f"{sentence(number)} It is tall." for number in range(1, NUMBER + 1)]
    write_notebook(path, [{"cell_type": "markdown", "source": text} for text in texts])


def write_paragraphs(path: Path) -> None:
    document = docx.Document()
    for number in range(1, NUMBER + 1):
        document.add_paragraph(sentence(number))
    document.save(str(path))


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "slide": ("a.pptx", write_slides), "page": ("a.pdf", write_pages),
    "part": ("a.epub", write_book), "cell": ("a.ipynb", write_cells),
    "paragraph": ("a.docx", write_paragraphs),
}  # fmt: skip


@pytest.fixture(scope="module", params=FILES)
def chunked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Document]]:
    name, write = FILES[request.param]
    folder = tmp_path_factory.mktemp("places")
    write(folder / name)
    (loaded,) = load(folder / name)
    assert isinstance(loaded, SourceText)
    return request.param, split(loaded, str(folder))


def test_each_of_fifty_quotations_names_its_place(chunked: tuple[str, list[Document]]) -> None:
    unit, chunks = chunked
    assert len(chunks) < NUMBER, "places are those of the chunk's parts, not of the chunk"
    found = set[int]()
    for chunk in chunks:
        text = chunk.page_content
        for match in re.finditer(r"Lighthouse (\d+) stands on rock \d+\.", text):
            number = int(match[1])
            source = source_within(source_of(chunk, 0), text, *match.span())
            assert source["position"] == f"{unit} {number}"
            found.add(number)
    assert found == set(range(1, NUMBER + 1))


def test_what_leads_in_a_part_of_a_list_is_not_its_place(tmp_path: Path) -> None:
    items = "".join(f"- **-{n}**: {'The light turns. ' * 6}\n" for n in range(40))
    (tmp_path / "a.md").write_text(f"# Lights\n\nThe options are:\n\n{items}")
    (loaded,) = load(tmp_path / "a.md")
    assert isinstance(loaded, SourceText)
    for chunk in split(loaded, "/")[1:]:
        text = chunk.page_content
        assert text.startswith("The options are:")
        source = source_within(source_of(chunk, 0), text, 0, text.index("turns"))
        assert source["position"] == f"line {int(re.findall('- [*][*]-([0-9]+)', text)[0]) + 5}"


def test_places_of_others_may_be_any_number() -> None:
    assert lines_written([(3, 3), (3, 3), (4, 6), (7, 7)]) == "3*2 4-6 7"
    assert line_places(f"9*{10**30}", 2) == [(9, 9), (9, 9)]
