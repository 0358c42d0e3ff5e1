"""Sections of the documentation of open-source packages, and rows of a reader made from them.

The packages are source distributions on the package index: file, SHA-256 and licence of each. Only
their documentation is kept, and split as `crag index` does it.

A heading that asks ("Why does my import fail?") or names a task ("Installing from source") is the
question, and the section below it the answer, mostly without the heading. Against it stand sections
of the same package that a search by words finds, and sections of another package that answer a
question like it. Where in a section the answer stands is not known.
"""

import hashlib
import io
import json
import logging
import random
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx

from crag.documents.chunks import split
from crag.documents.loaders import load
from crag.documents.sources import SourceText
from crag.errors import CragError, TrainingError
from crag.extras import require
from crag.papers.reader.rows import ReadingRow
from crag.text.markup import without_markup

_log = logging.getLogger(__name__)
INDEX = "https://pypi.org/simple"
HELD_OUT_PACKAGES = ("starlette", "click", "prometheus", "flask", "httpx", "typer", "fastapi")
"""What measurements ask about, and what shares its documentation: no such package is learned."""
FILES = 250
"""Files read of one package; those called FAQ first."""
LARGEST, LONGEST = 400_000, 200_000
"""Bytes of a file, characters of a document."""
MOST = {"asked": 80, "headed": 40, "task": 32}
"""Questions of each kind taken from one package."""
SHOWN = 0.3
"""Share of the answers that keep their heading."""
DISTRACTORS = 2
"""Sections of the same package set against each answer, drawn from `RIVALS`."""
RIVALS = slice(1, 6)
"""Ranks by shared words; the first may well answer the question too."""
ELSEWHERE = 0.5
"""Share of the questions that are also set against another package."""
_SUFFIXES = (".rst", ".md", ".txt")
_LEFT_OUT = re.compile(
    r"(^|/)(tests?|vendor|_vendor|node_modules|licenses?|third_party|changelog|changes|release"
    r"|releases|whatsnew|news|history|authors|api_changes)(/|\b)"
)
_ASKING = re.compile(
    r"^(how|what|why|when|where|who|which|can|could|do|does|did|is|are|will|should|may|must|if)\b",
    re.IGNORECASE,
)
_NEWS = re.compile(r"what'?s? (is |are )?new|what's next", re.IGNORECASE)
_NUMBER = re.compile(r"^(\(?\d+(\.\d+)*[.)]?|Q\d*[:.)])\s+")
_TASK = re.compile(r"[A-Z][a-z]+ing\s.+")
_UNDERLINE = re.compile(r"\s*[=\-~^\"'`+*#.:_]{3,}\s*|\s*")
_WORD = re.compile(r"[a-z0-9_]{3,}")
_STEM = 7
_DEEPEST_HEADING = 3
"""Lines into a chunk within which its heading is looked for."""
_FEWEST_WORDS = 15
_HEADING_WORDS = range(3, 23)
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        the and for how what why does are can you with from that this not use using used its into
        when where which will should have has was were your our all any one two may but who did
        there
        """,
    )
)
"""Words that say nothing of what is asked."""


class Distribution(NamedTuple):
    """One package on the index."""

    name: str
    file: str
    sha256: str
    licence: str


class Section(NamedTuple):
    """A section of a package, as `crag index` splits it."""

    package: str
    source: str
    """The file within the package."""
    title: str
    section: str
    """The headings above it."""
    text: str

    @property
    def path(self) -> list[str]:
        """Title and headings, each once."""
        return list(dict.fromkeys(filter(None, [self.title, *self.section.split(" > ")])))


class Search:
    """Texts by BM25 over the beginnings of their words (k1 1.2, b 0.75)."""

    def __init__(self, texts: Sequence[str]) -> None:
        require("train", "rows of documentation", "bm25s")
        import bm25s

        self._index = bm25s.BM25(k1=1.2, b=0.75)
        stems = [[word[:_STEM] for word in _WORD.findall(text.lower())] for text in texts]
        self._index.index(stems, show_progress=False)

    def found(self, question: str) -> list[int]:
        """Return the places of all texts with a word of the question, best first."""
        stems = words_in(question)
        if not stems:
            return []
        scores = self._index.get_scores(stems)
        return [int(place) for place in (-scores).argsort(kind="stable") if scores[place] > 0]


def words_in(text: str) -> list[str]:
    """Return the beginnings of the words that say what a text asks, each once."""
    words = [word for word in _WORD.findall(text.lower()) if word not in COMMON]
    return list(dict.fromkeys(word[:_STEM] for word in words))


def listed(packages: Path) -> list[Distribution]:
    """Read a JSON list of packages.

    Raises:
        TrainingError: it cannot be read, or measurements ask about one (`HELD_OUT_PACKAGES`).
    """
    try:
        read = [Distribution(**package) for package in json.loads(packages.read_text("utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        message = f"{packages} is no list of packages with name, file, sha256 and licence: {error}"
        raise TrainingError(message) from error
    for package in read:
        if any(name in package.name.lower() for name in HELD_OUT_PACKAGES):
            message = (
                f"{package.name} is kept out of training, because measurements ask about its "
                f"documentation or that of its kin. Remove it from {packages}"
            )
            raise TrainingError(message)
    return read


def fetched(packages: Path, folder: Path) -> list[Path]:
    """Fetch the documentation that a JSON list of packages names; return the folder of each.

    Raises:
        TrainingError: the list cannot be used, or a file has another SHA-256 than is listed.
    """
    distributions = listed(packages)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda package: _fetch(package, folder / package.name), distributions))
    return [folder / package.name for package in distributions]


def _fetch(package: Distribution, folder: Path) -> None:
    if folder.is_dir():
        return
    accepted = {"Accept": "application/vnd.pypi.simple.v1+json"}
    with httpx.Client(timeout=300, follow_redirects=True) as client:
        page = client.get(f"{INDEX}/{package.name}/", headers=accepted).raise_for_status().json()
        urls = {file["filename"]: file["url"] for file in page["files"]}
        content = client.get(urls[package.file]).raise_for_status().content
    if hashlib.sha256(content).hexdigest() != package.sha256:
        message = f"{package.file}: its SHA-256 is not the one that is listed"
        raise TrainingError(message)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            name = member.name.lower()
            wanted = name.endswith(_SUFFIXES) and not _LEFT_OUT.search(name)
            if wanted and member.size <= LARGEST:
                member.name = member.name.partition("/")[2]
                archive.extract(member, folder, filter="data")


def sections_of(folder: Path, draw: random.Random) -> list[Section]:
    """Split the documentation of one package."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    files = [
        path
        for path in files
        if path.suffix != ".txt" or "doc" in str(path.relative_to(folder)).lower()
    ]
    draw.shuffle(files)
    files.sort(key=lambda path: "faq" not in path.name.lower())
    sections: list[Section] = []
    for path in files[:FILES]:
        source = path.relative_to(folder).as_posix()
        try:
            for document in load(path):
                if isinstance(document, SourceText) and len(document.text) < LONGEST:
                    for chunk in split(document, str(folder)):
                        about = chunk.metadata.get
                        title, section = str(about("title") or ""), str(about("section") or "")
                        text = chunk.page_content
                        sections.append(Section(folder.name, source, title, section, text))
        except CragError as error:
            _log.warning("%s: %s", path, error)
    return sections


def documentation_rows(folders: Sequence[Path], seed: int = 0) -> list[ReadingRow]:
    """Return the rows of all packages, shuffled."""
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    rows: list[ReadingRow] = []
    answers: list[tuple[str, ReadingRow]] = []
    for folder in folders:
        for row in _rows_of(sections_of(folder, draw), draw):
            rows.append(row)
            if row.answer:
                answers.append((folder.name, row))
    rows += _elsewhere(answers, draw)
    draw.shuffle(rows)
    return rows


def _rows_of(sections: Sequence[Section], draw: random.Random) -> Iterator[ReadingRow]:
    """Yield the answers of one package, each with the sections that stand against it."""
    asked = list(_asked(sections))
    if not asked:
        return
    search = Search([f"{one.text} {one.section}" for one in sections])
    draw.shuffle(asked)
    taken: Counter[str] = Counter()
    for index, question, kind, below in asked:
        taken[kind] += 1
        if taken[kind] > MOST[kind]:
            continue
        own = sections[index]
        path, text = own.path, own.text
        if draw.random() >= SHOWN:
            path, text = path[:-1], below
        yield _row(question, path, text, f"docs_{kind}", entity=1, answer=1)
        found = (sections[place] for place in search.found(question))
        rivals = [other for other in found if not _related(own, other)][RIVALS]
        for other in draw.sample(rivals, min(DISTRACTORS, len(rivals))):
            yield _row(question, other.path, other.text, "docs_other", entity=None, answer=0)


def _asked(sections: Sequence[Section]) -> Iterator[tuple[int, str, str, str]]:
    """Yield sections that a heading with a question begins: index, question, kind, text below."""
    seen = set()
    for index, one in enumerate(sections):
        heading = one.section.split(" > ")[-1]
        if not heading or (one.source, one.section) in seen:
            continue
        seen.add((one.source, one.section))
        found = question_of(heading)
        below = _below(one.text, heading)
        if found is not None and below is not None and len(below.split()) >= _FEWEST_WORDS:
            yield index, *found, below


def question_of(heading: str) -> tuple[str, str] | None:
    """Return the question that a heading asks, and its kind; None for most headings.

    One that names a task is asked as people type it: in small letters, without a mark.
    """
    text = _NUMBER.sub("", " ".join(without_markup(heading).split()).strip(" #:*"))
    if not text.isascii() or len(text.split()) not in _HEADING_WORDS or _NEWS.match(text):
        return None
    if text.endswith("?"):
        return text, "asked"
    if _ASKING.match(text):
        return f"{text}?", "headed"
    return (text.lower(), "task") if _TASK.fullmatch(text) else None


def _below(text: str, heading: str) -> str | None:
    """Return the text below its heading, or None if that stands deep within it."""
    lines = text.split("\n")
    wanted = without_markup(heading).strip(" #*")
    plain = [without_markup(line).strip(" #*=-~^\"'") for line in lines]
    if wanted not in plain:
        return text
    at = plain.index(wanted)
    if at >= _DEEPEST_HEADING:
        return None
    at += 1
    while at < len(lines) and _UNDERLINE.fullmatch(lines[at]):
        at += 1
    return "\n".join(lines[at:])


def _related(one: Section, other: Section) -> bool:
    """Say whether one of two sections stands in the other, or above it."""
    here, there = one.section, other.section
    return one.source == other.source and (here.startswith(there) or there.startswith(here))


def _elsewhere(
    answers: Sequence[tuple[str, ReadingRow]], draw: random.Random
) -> Iterator[ReadingRow]:
    """Yield questions with what answers a question like it about another package."""
    for package, row in answers:
        if draw.random() < ELSEWHERE:
            continue
        wanted = set(words_in(row.question))
        others = [
            other
            for name, other in draw.sample(answers, min(300, len(answers)))
            if name != package and other.question != row.question
        ]
        if others:
            best = max(others, key=lambda other: len(wanted & set(words_in(other.question))))
            path = [best.title]
            yield _row(row.question, path, best.text, "docs_elsewhere", entity=0, answer=0)


def _row(  # noqa: PLR0913 - what is known of it
    question: str, path: Sequence[str], text: str, source: str, *, entity: int | None, answer: int
) -> ReadingRow:
    """Return a row of which no place is known."""
    title = " > ".join(path)[:200]
    return ReadingRow(
        question=question, title=title, text=text, entity=entity, answer=answer, source=source,
        span_known=False,
    )  # fmt: skip
