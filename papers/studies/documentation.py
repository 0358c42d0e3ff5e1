"""The questions over real documentation, what is retrieved for them, and how answers are judged.

The folder has corpus/NAME/… and questions.jsonl; each question has gold `answers`, verbatim
`evidence` and a kind, and 48 of 150 have neither. Every corpus is indexed as `crag index` does it.

A question's evidence is held by a text that contains one of the excerpts. An answer is right if it
contains an excerpt, or what `answers` asks for: every string for lists, comparisons and
two-sentences, else any one, as whole words; "yes" and "no" are not looked for. Gold texts stand in
the source with its markup, ours are written as they are read: so the words alone are compared, in
lower case, without tags, roles, addresses of links and lines of directives.
"""

import argparse
import json
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.answering.context import kept_strips
from crag.correction.scoring import LOWEST
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag
from crag.index import DocumentIndex, index_paths
from crag.index.retriever import IndexRetriever
from crag.models.encoder import packaged_encoder
from crag.papers.loading.records import read_objects
from crag.parts import Evaluator, Parts
from crag.settings import Settings
from crag.state import State

K = 10
_ALL_PARTS = {"list", "comparison", "two-sentences"}
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_UNREAD = re.compile(
    r"\]\([^()\s]*(?:\{%[^%]*%\}[^()\s]*)?\)|(?<=[\w`*]) \(https?://[^()\s]*\)|\]\[[^\]\n]*\]"
    r"|\s*<[^<>\n]{0,200}>(?=`)|^\s*\.\. [\w:-]+::.*$|:[\w:+.-]+:(?=`)|\{[\w:+.-]+\}(?=`)",
    re.MULTILINE,
)
"""Addresses of links, in Markdown, in brackets and in reStructuredText, directives and roles."""
_WORD = re.compile(r"[^\W_]+")
_QUOTATION = re.compile(r"“(.*?)” \[\d+\]", re.DOTALL)


class Asked(NamedTuple):
    """One question with the documents retrieved for it."""

    id: str
    corpus: str
    question: str
    answers: tuple[str, ...]
    evidence: tuple[str, ...]
    kind: str
    documents: tuple[Document, ...]

    @property
    def answerable(self) -> bool:
        """Whether a file of the corpus answers it."""
        return bool(self.evidence)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that every measurement over documentation has."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("docs", type=Path, help="folder with corpus/ and questions.jsonl")
    parser.add_argument("--only", nargs="*", default=[], help="corpora to take")
    parser.add_argument("--details", action="store_true", help="print each question's outcome")
    return parser


def questions(docs: Path, only: Sequence[str] = ()) -> list[Asked]:
    """Return the questions without documents, of all corpora or of these."""
    rows = map(asked_of, read_objects(docs / "questions.jsonl"))
    return [row for row in rows if not only or row.corpus in only]


def indexed_corpora(
    docs: Path, asked: Sequence[Asked], keep: Path | None = None
) -> Iterator[tuple[DocumentIndex, list[Asked]]]:
    """Yield an index of each corpus with its questions; the folder `keep` keeps the indexes."""
    with tempfile.TemporaryDirectory() as folder:
        for corpus in dict.fromkeys(row.corpus for row in asked):
            with DocumentIndex((keep or Path(folder)) / corpus, packaged_encoder()) as index:
                index_paths([docs / "corpus" / corpus], index)
                yield index, [row for row in asked if row.corpus == corpus]


def embedded_parts(retriever: BaseRetriever) -> Parts:
    """Return the embedded default: the shipped evaluator quotes, without a model and a web."""
    evaluator = _shipped()
    return Parts(retriever=retriever, evaluator=evaluator, quoter=ExtractiveAnswerer(evaluator))


def quoted_at_any_score(retriever: BaseRetriever, question: str) -> tuple[float, str]:
    """Return the score of the best quotation, from -1 to 1, and what is shown if it is sure."""
    settings, quoter = Settings(), ExtractiveAnswerer(_shipped(), threshold=LOWEST)
    parts = Parts(retriever=retriever, evaluator=_shipped(), quoter=quoter)
    state = cast("State", build_crag(parts).invoke({"question": question}, context=settings))
    found = quoter.quote(state["question"], kept_strips(state, settings))
    shown = "\n".join(one.text for one in found if not one.further)
    return (found[0].score if found else LOWEST), shown


@cache
def _shipped() -> Evaluator:
    return load_evaluator()


def retrieved(docs: Path, cache: Path | None, only: Sequence[str] = ()) -> list[Asked]:
    """Return the questions with ten documents each, from `cache` where it holds them."""
    rows = read_objects(docs / "questions.jsonl")
    known = {}
    if cache is not None and cache.exists():
        known = {row["id"]: row for row in json.loads(cache.read_text(encoding="utf-8"))}
    found = []
    for corpus in only or dict.fromkeys(row["corpus"] for row in rows):
        asked = [row for row in rows if row["corpus"] == corpus]
        if not all(row["id"] in known for row in asked):
            _retrieve(docs / "corpus" / corpus, asked)
            known |= {row["id"]: row for row in asked}
            if cache is not None:
                cache.write_text(json.dumps(list(known.values())), encoding="utf-8")
        found += [known[row["id"]] for row in asked]
    return [asked_of(row) for row in found]


def asked_of(row: Mapping[str, Any]) -> Asked:
    """Return a question of the file, with the documents that were retrieved for it, if any."""
    return Asked(
        row["id"],
        row["corpus"],
        row["question"],
        tuple(row["answers"]),
        tuple(row["evidence"]),
        row["kind"],
        tuple(Document(**found) for found in row.get("documents", ())),
    )


def _retrieve(corpus: Path, rows: Sequence[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "pages")
        shutil.copytree(corpus, pages)
        with DocumentIndex(Path(folder, "index"), packaged_encoder()) as index:
            index_paths([pages], index)
            retriever = IndexRetriever(index, K)
            for row in rows:
                row["documents"] = [
                    {
                        "page_content": found.page_content,
                        "id": found.id,
                        "metadata": {
                            **found.metadata,
                            "source": str(
                                Path(found.metadata["source"]).relative_to(pages.resolve())
                            ),
                            "root": "",
                        },
                    }
                    for found in retriever.invoke(row["question"])
                ]


def shown_passages(answer: str) -> list[str]:
    """Return what an answer quotes, or its closest passages, the first one first."""
    return _QUOTATION.findall(answer)


def count_words(texts: Sequence[str]) -> int:
    """Count what white space divides."""
    return sum(len(text.split()) for text in texts)


def normal(text: str) -> str:
    """Fold what the gold texts and ours may differ in."""
    plain = _TAG.sub(" ", unicodedata.normalize("NFKC", _UNREAD.sub(" ", text)))
    return " ".join(_WORD.findall(plain.lower()))


def holds_evidence(text: str, one: Asked) -> bool:
    """Say whether an excerpt stands in `text`."""
    found = normal(text)
    return any(normal(excerpt) in found for excerpt in one.evidence)


def is_right(answer: str, one: Asked) -> bool:
    """Say whether an answer holds what was asked for."""
    if not answer or not one.answerable:
        return False
    if holds_evidence(answer, one):
        return True
    wanted = [normal(part) for part in one.answers]
    if one.kind == "yes-no":
        wanted = wanted[1:]
    found = normal(answer)
    held = [re.search(rf"(?<!\w){re.escape(part)}(?!\w)", found) is not None for part in wanted]
    return bool(held) and (all(held) if one.kind in _ALL_PARTS else any(held))
