"""Compare readers of PDF by word order, headings, tables and speed.

    pip install pdfplumber docling-parse
    python papers/measurements/pdf_readers.py FOLDER

FOLDER holds unpacked packages of Debian, made by LaTeX and published with their sources:
`debian-faq` (one column, headings), `debian-reference-es` (tables), and `texlive-publishers-doc`
(acmart and RevTeX samples, two columns); `dpkg-deb -x FILE FOLDER/NAME`. A reader that is not
installed is left out.
"""

import gzip
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from lxml import html

from crag.text.pdf import read_pdf, read_web_pdf

Reader = Callable[[bytes], list[str]]
"""From the bytes of a file to the texts of its pages."""

_WORD = re.compile(r"[^\W\d_]+")
_TEX_COMMENT = re.compile(r"(?<!\\)%.*")
_TEX_DROPPED = re.compile(
    r"\\begin\{(?:figure|table|tabular|equation|align|displaymath|CCSXML|eqnarray|widetext|teaserfigure)\*?\}"
    r".*?\\end\{(?:figure|table|tabular|equation|align|displaymath|CCSXML|eqnarray|widetext|teaserfigure)\*?\}",
    re.DOTALL,
)
_EVERY = 1 << 30
_SHORTEST_PARAGRAPH = 30
"""Words: shorter ones in a source are mostly commands."""


class Truth(NamedTuple):
    """What a file says, from its source."""

    body: bytes
    paragraphs: list[str]
    headings: list[str]
    rows: list[list[str]]
    """Cells of rows of tables."""


def as_files(body: bytes) -> list[str]:
    """Read as crag reads files."""
    return read_pdf(body).pages


def as_pages(body: bytes) -> list[str]:
    """Read as crag reads pages of the web."""
    return read_web_pdf(body, most_pages=_EVERY, most_characters=_EVERY).pages


def by_pypdf_layout(body: bytes) -> list[str]:
    """Read with pypdf's mode that keeps the places of words."""
    from pypdf import PdfReader

    return [page.extract_text(extraction_mode="layout") for page in PdfReader(BytesIO(body)).pages]


def by_pdfminer(body: bytes) -> list[str]:
    """Read with the layout analysis of pdfminer.six."""
    from pdfminer.high_level import extract_text  # type: ignore[import-not-found, unused-ignore]

    return str(extract_text(BytesIO(body))).split("\f")


def by_pdfplumber(body: bytes) -> list[str]:
    """Read with pdfplumber, the rows of its tables after the text."""
    import pdfplumber  # type: ignore[import-not-found, unused-ignore]

    with pdfplumber.open(BytesIO(body)) as file:
        pages = []
        for page in file.pages:
            rows = [row for table in page.extract_tables() for row in table]
            lines = [" ".join((cell or "").replace("\n", " ") for cell in row) for row in rows]
            pages.append("\n".join([page.extract_text(), *lines]))
        return pages


def by_docling_parse(body: bytes) -> list[str]:
    """Read with docling-parse, line by line."""
    from docling_core.types.doc.page import TextCellUnit  # type: ignore[import-not-found, unused-ignore]
    from docling_parse.pdf_parser import DoclingPdfParser  # type: ignore[import-not-found, unused-ignore]

    document = DoclingPdfParser(loglevel="fatal").load(BytesIO(body))
    return [
        "\n".join(cell.text for cell in page.iterate_cells(unit_type=TextCellUnit.LINE))
        for _, page in document.iterate_pages()
    ]


READERS: Mapping[str, tuple[str, Reader]] = {
    "PDFium, as crag reads files": ("pypdfium2", as_files),
    "pypdf, as crag reads pages of the web": ("pypdf", as_pages),
    "pypdf, layout": ("pypdf", by_pypdf_layout),
    "pdfminer.six": ("pdfminer", by_pdfminer),
    "pdfplumber with tables": ("pdfplumber", by_pdfplumber),
    "docling-parse": ("docling_parse", by_docling_parse),
}


def of_html(pdf: Path, pages: Iterable[Path]) -> Truth:
    """Read the truth from the same document in HTML."""
    trees = [html.parse(str(one), html.HTMLParser(encoding="utf-8")).getroot() for one in pages]
    texts = [one.text_content() for tree in trees for one in tree.xpath("//body//p[not(.//pre)]")]
    heads = [one.text_content() for tree in trees for one in tree.xpath("//h2[@class='title']")]
    rows = [
        [" ".join(cell.text_content().split()) for cell in row.xpath("./td")]
        for tree in trees
        for row in tree.xpath("//div[@class='table']//tr[td]")
    ]
    return Truth(pdf.read_bytes(), texts, heads, [row for row in rows if len(row) > 1])


def of_tex(pdf: Path, source: Path) -> Truth:
    """Read the truth from a LaTeX source, its formulas, figures and commands left out."""
    text = gzip.decompress(source.read_bytes()).decode("utf-8", "replace")
    text = text.partition(r"\begin{document}")[2].partition(r"\appendix")[0]
    text = _TEX_DROPPED.sub("\n\n", _TEX_COMMENT.sub("", text))
    heads = re.findall(r"\\(?:sub)*section\*?\{([^{}\\]+)\}", text)
    paragraphs = [
        one
        for one in re.split(r"\n\s*\n", re.sub(r"``|''|~", " ", text))
        if "\\" not in one and "$" not in one and len(one.split()) >= _SHORTEST_PARAGRAPH
    ]
    return Truth(pdf.read_bytes(), paragraphs, heads, [])


def pairs_found(truth: Truth, text: str) -> float:
    """Return the share of neighbouring words of the source that are neighbours in the text."""
    found = set(pairwise(words(text)))
    wanted = [pair for one in truth.paragraphs for pair in pairwise(words(one))]
    return sum(pair in found for pair in wanted) / len(wanted)


def headings_found(truth: Truth, lines: set[str]) -> float:
    """Return the share of headings that are a line of their own, with a number or without."""
    wanted = {"".join(words(one)) for one in truth.headings}
    return len(wanted & lines) / len(wanted)


def rows_found(truth: Truth, text: str) -> float:
    """Return the share of rows whose cells follow each other, in order and unbroken."""
    joined = "".join(words(text))
    wanted = ["".join(words(" ".join(row))) for row in truth.rows]
    return sum(row in joined for row in wanted) / len(wanted) if wanted else 0.0


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, those cut at the end of a line joined."""
    return [one.lower() for one in _WORD.findall(re.sub(r"(?<=\w)[-\xad]\s*\n\s*", "", text))]


def main(folder: Path) -> None:
    """Print a row for each reader and file."""
    english, spanish = folder / "debian-faq", folder / "debian-reference-es"
    (two,) = folder.glob("**/acmart/samples/sample-sigconf.pdf")
    aps = min(folder.glob("**/revtex/sample/aps/apssamp.pdf"))
    truths = {
        "one column": of_html(
            unpacked(next(english.rglob("debian-faq.en.pdf*"))), sorted(english.rglob("*.en.html"))
        ),
        "tables": of_html(
            next(spanish.rglob("*.es.pdf")), sorted(spanish.rglob("ch*.es.html"))
        ),
        "two columns (acmart)": of_tex(two, two.with_suffix(".tex.gz")),
        "two columns (RevTeX)": of_tex(aps, aps.with_suffix(".tex.gz")),
    }  # fmt: skip
    print(
        "| reader | file | pages | pairs | headings | rows | pages/s |\n"
        "|---|---|---|---|---|---|---|"
    )
    for name, (module, read) in READERS.items():
        if find_spec(module) is None:
            continue
        for file, truth in truths.items():
            started = time.process_time()
            pages = read(truth.body)
            seconds = time.process_time() - started
            text = "\n".join(pages)
            lines = {"".join(words(line)) for line in text.splitlines()}
            rows = f"{rows_found(truth, text):.2f}" if truth.rows else "-"
            print(
                f"| {name} | {file} | {len(pages)} | {pairs_found(truth, text):.3f} "
                f"| {headings_found(truth, lines):.2f} | {rows} | {len(pages) / seconds:.0f} |",
                flush=True,
            )


def unpacked(file: Path) -> Path:
    """Return a file, unpacked beside itself if need be."""
    if file.suffix != ".gz":
        return file
    target = file.with_suffix("")
    target.write_bytes(gzip.decompress(file.read_bytes()))
    return target


if __name__ == "__main__":
    main(Path(sys.argv[1]))
