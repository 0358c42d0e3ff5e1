"""Make training rows of a reader from the documentation of open-source packages.

The packages are source distributions on the package index: file, SHA-256 and licence of each. Only
their documentation is kept, and split as `crag index` does it.

A heading that asks ("Why does my import fail?") or names a task ("Installing from source") is the
question, and the section below it the answer, mostly without the heading. Against it stand sections
of the same package that share rare words with the question, and sections of another package that
answer a question like it. Where in a section the answer stands is not known.
"""

import hashlib
import io
import json
import logging
import math
import random
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from langchain_core.documents import Document

from crag.documents.chunks import split
from crag.documents.loaders import load
from crag.documents.sources import SourceText
from crag.errors import CragError, TrainingError
from crag.papers.reader.reading_rows import ReadingRow
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
AGAINST = {"entity": None, "answer": 0, "source": "docs_other"}
"""What is known of a section of the same package."""
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
_TASK = re.compile(r"^([A-Z][a-z]+)ing\b(.*)$")
_UNDERLINE = re.compile(r"\s*[=\-~^\"'`+*#.:_]{3,}\s*|\s*")
_WORD = re.compile(r"[a-z0-9_]{3,}")
_STEM = 7
_DEEPEST_HEADING = 3
"""Lines into a chunk within which its heading is looked for."""
_FEWEST_WORDS = 15
_BARE = 0.5
"""Share of the questions with "How to" that have no question mark."""
_WORDS = {"asked": range(3, 23), "headed": range(4, 23), "task": range(2, 13)}
"""How many words the heading has."""
_ASKS = ("How do I", "How can I", "How to", "How do you")
_VERBS = re.findall(
    r"\w+",
    """
    abort access add allocate apply attach authenticate avoid back bind build cache calculate call
    cancel catch change choose cite clean clear clone close combine commit compare compile compute
    configure connect contribute control convert copy create customise customize debug declare
    decrypt define delete deploy detach diagnose disable display document download draw embed
    enable encrypt evaluate exclude execute export extend fetch fill filter find fix fork format
    generate get group handle hide host ignore import include increase inherit initialize insert
    inspect install instantiate integrate interact invoke join launch limit load log make manage
    map mark measure merge migrate mix mock monitor mount move name nest open optimize order
    override package parse pass plot prevent print process profile publish pull push query queue
    raise read receive record recover redirect reduce register release remove rename render
    replace report request reset resolve respond restore restrict retry route run save schedule
    search secure select send serialize serve set share show shut sign skip solve sort specify
    speed split start stop stream subclass subscribe switch tag test trace track train transform
    translate troubleshoot turn understand update upgrade upload use validate verify watch work
    wrap write
    """,
)
_DOUBLED = frozenset({"get", "map", "plot", "run", "set", "shut", "skip", "stop", "tag", "wrap"})
"""Verbs whose last letter is doubled before -ing."""
_WHOLE = frozenset({"queue"})
"""Verbs that keep their last letter."""


class Distribution(NamedTuple):
    """One package on the index."""

    name: str
    file: str
    sha256: str
    licence: str


class Answer(NamedTuple):
    """A question and the section that answers it."""

    package: str
    words: frozenset[str]
    row: dict[str, Any]


def documentation_rows(packages: Path, folder: Path) -> list[ReadingRow]:
    """Fetch the documentation that a JSON list of packages names into `folder`; make its rows.

    Raises:
        TrainingError: the list cannot be read or names a package that is held out, or a file has
            another SHA-256 than is listed.
    """
    draw = random.Random(0)  # noqa: S311 - data, no secret
    rows = made(fetched(listed(packages), folder), draw)
    return [ReadingRow.model_validate(row) for row in rows]


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


def fetched(distributions: Sequence[Distribution], folder: Path) -> list[Path]:
    """Fetch the documentation of packages, and return the folder of each.

    Raises:
        TrainingError: a file has another SHA-256 than is listed.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda package: fetch(package, folder / package.name), distributions))
    return [folder / package.name for package in distributions]


def fetch(package: Distribution, folder: Path) -> None:
    """Keep the documentation of a source distribution, unless the folder is there already."""
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
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            wanted = member.size <= LARGEST and _is_documentation(member.name)
            if wanted and (file := archive.extractfile(member)) is not None:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read())
    folder.mkdir(parents=True, exist_ok=True)


def _is_documentation(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_SUFFIXES) and not _LEFT_OUT.search(lower)


def made(folders: Sequence[Path], draw: random.Random) -> list[dict[str, Any]]:
    """Return the rows of all packages, shuffled."""
    rows: list[dict[str, Any]] = []
    answers: list[Answer] = []
    for folder in folders:
        chunks = chunks_in(folder, draw)
        if chunks:
            found, against = rows_of(folder.name, chunks, draw)
            answers += found
            rows += against
    rows += list(elsewhere(answers, draw))
    draw.shuffle(rows)
    return rows


def chunks_in(folder: Path, draw: random.Random) -> list[Document]:
    """Split the documentation of one package."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES)
    files = [
        path
        for path in files
        if path.suffix != ".txt" or "doc" in str(path.relative_to(folder)).lower()
    ]
    draw.shuffle(files)
    files.sort(key=lambda path: "faq" not in path.name.lower())
    chunks: list[Document] = []
    for path in files[:FILES]:
        try:
            for document in load(path):
                if isinstance(document, SourceText) and len(document.text) < LONGEST:
                    chunks += split(document, str(folder))
        except CragError as error:
            _log.warning("%s: %s", path, error)
    return chunks


def rows_of(
    package: str, chunks: Sequence[Document], draw: random.Random
) -> tuple[list[Answer], list[dict[str, Any]]]:
    """Return the answers of one package, and its rows: those and what stands against them."""
    words = [words_in(f"{chunk.page_content} {_section(chunk)}") for chunk in chunks]
    rarity = _rarity(words)
    asked = list(_asked(chunks, draw))
    draw.shuffle(asked)
    taken: Counter[str] = Counter()
    answers: list[Answer] = []
    rows: list[dict[str, Any]] = []
    for index, question, kind, hidden in asked:
        if taken[kind] == MOST[kind]:
            continue
        taken[kind] += 1
        row = _answering(question, chunks[index], hidden, kind, draw)
        wanted = words_in(question)
        answers.append(Answer(package, wanted, row))
        rows.append(row)
        rivals = [
            other
            for other in range(len(chunks))
            if wanted & words[other] and not _related(chunks[index], chunks[other])
        ]
        rivals.sort(key=lambda other: _likeness(wanted, words[other], rarity), reverse=True)
        drawn = rivals[RIVALS]
        for other in draw.sample(drawn, min(DISTRACTORS, len(drawn))):
            path = [_title(chunks[other]), *_section(chunks[other]).split(" > ")]
            rows.append(_row(question, path, chunks[other].page_content) | AGAINST)
    return answers, rows


def _asked(chunks: Sequence[Document], draw: random.Random) -> Iterator[tuple[int, str, str, str]]:
    """Yield the chunks that a heading with a question begins: index, question, kind, text below."""
    seen = set()
    for index, chunk in enumerate(chunks):
        place = (chunk.metadata["source"], _section(chunk))
        heading = _section(chunk).split(" > ")[-1]
        if not heading or place in seen:
            continue
        seen.add(place)
        found = question_of(heading, draw)
        if found is None:
            continue
        below = _below(chunk.page_content, heading)
        if below is not None and len(below.split()) >= _FEWEST_WORDS:
            yield index, *found, below


def question_of(heading: str, draw: random.Random) -> tuple[str, str] | None:
    """Return the question that a heading asks, and its kind; None for most headings."""
    text = _NUMBER.sub("", " ".join(without_markup(heading).split()).strip(" #:*"))
    if not text.isascii():
        return None
    length = len(text.split())
    kind = "asked" if text.endswith("?") else "headed"
    asks = kind == "asked" or _ASKING.match(text)
    if asks and length in _WORDS[kind] and re.search("[a-z]{3}", text):
        return None if _NEWS.match(text) else (text.removesuffix("?") + "?", kind)
    task = _TASK.match(text)
    if task and length in _WORDS["task"] and task[1].lower() in _BASE:
        rest = re.sub(
            r"\band ([a-z]+)ing\b", lambda found: f"and {_BASE.get(found[1], found[1])}", task[2]
        )
        start = draw.choice(_ASKS)
        question = " ".join([start, _BASE[task[1].lower()], *rest.split()])
        bare = start == "How to" and draw.random() < _BARE
        return (question if bare else f"{question}?"), "task"
    return None


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


def _answering(
    question: str, chunk: Document, hidden: str, kind: str, draw: random.Random
) -> dict[str, Any]:
    path = [_title(chunk), *_section(chunk).split(" > ")]
    text = chunk.page_content
    if draw.random() >= SHOWN:
        named = path[0].strip().lower() == path[-1].strip().lower()
        path, text = ([] if named else path[:-1]), hidden
    return _row(question, path, text) | {"entity": 1, "answer": 1, "source": f"docs_{kind}"}


def elsewhere(answers: Sequence[Answer], draw: random.Random) -> Iterator[dict[str, Any]]:
    """Yield questions with what answers a question like it about another package."""
    for one in answers:
        if draw.random() < ELSEWHERE:
            continue
        others = [
            other
            for other in draw.sample(list(answers), min(300, len(answers)))
            if other.package != one.package and other.row["question"] != one.row["question"]
        ]
        best = max(others, key=lambda other: len(one.words & other.words) / (1 + len(other.words)))
        question = one.row["question"]
        yield best.row | {
            "question": question,
            "entity": 0,
            "answer": 0,
            "source": "docs_elsewhere",
        }


def _row(question: str, path: Sequence[str], text: str) -> dict[str, Any]:
    """Lay out a row of which nothing is known yet."""
    return {
        "question": question,
        "title": " > ".join(dict.fromkeys(part for part in path if part))[:200],
        "text": text,
        "entity": None,
        "answer": None,
        "evidence": None,
        "span": None,
        "span_known": False,
        "source": "",
    }


def words_in(text: str) -> frozenset[str]:
    """Return the beginnings of the words of a text, without the commonest."""
    return frozenset(word[:_STEM] for word in _WORD.findall(text.lower())) - _COMMON


def _rarity(texts: Sequence[frozenset[str]]) -> dict[str, float]:
    counts = Counter(word for text in texts for word in text)
    return {word: math.log(len(texts) / count) for word, count in counts.items()}


def _likeness(wanted: frozenset[str], words: frozenset[str], rarity: Mapping[str, float]) -> float:
    shared = math.fsum(rarity.get(word, 0) for word in wanted & words)
    return shared / math.sqrt(20 + len(words))


def _related(one: Document, other: Document) -> bool:
    """Say whether one of two chunks stands in the section of the other, or above it."""
    here, there = _section(one), _section(other)
    same = one.metadata["source"] == other.metadata["source"]
    return same and (here.startswith(there) or there.startswith(here))


def _title(chunk: Document) -> str:
    return str(chunk.metadata.get("title") or "")


def _section(chunk: Document) -> str:
    return str(chunk.metadata.get("section") or "")


def _participle(verb: str) -> str:
    """Return a verb without its -ing."""
    if verb in _DOUBLED:
        return verb + verb[-1]
    return verb if verb in _WHOLE else verb.removesuffix("e")


_BASE = {_participle(verb): verb for verb in _VERBS}
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        the and for how what why does are can you with from that this not use using its into when
        where which will should have has was were your our all any one two may but who did
        """,
    )
)
