"""Measure what correction does over real documentation, with the embedded default and no web.

    python -m crag.papers.studies.docs_questions DOCS [--cache FILE] [--details]

DOCS has corpus/NAME/… and questions.jsonl; each question has gold `answers`, verbatim `evidence`
and a kind, and 48 of 150 have neither. Ten documents are retrieved for each; FILE keeps them.
`as shipped` is the graph with its thresholds. In the other row four thresholds are fitted on five
corpora and judge the sixth.

A text holds the evidence if it contains one of the excerpts. An answer is right if it does, or if
it contains what `answers` asks for: every string for lists, comparisons and two-sentences, else any
one, as whole words; "yes" and "no" are not looked for. Only words are compared, in lower case,
without tags, roles, addresses of links and lines of directives, which gold texts alone have.
"""

import argparse
import json
import math
import re
import statistics
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document

from crag.answering.context import kept_strips
from crag.answering.quoting import quotations_in
from crag.correction.evidence import strips_in_context
from crag.correction.provenance import passage_of
from crag.correction.strips import LOWEST
from crag.evaluators.reader import ReaderEvaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag
from crag.index import index_paths, open_index
from crag.index.retriever import IndexRetriever
from crag.models.encoder import packaged_encoder
from crag.papers.bench.report import table
from crag.papers.files import numbered_objects
from crag.parts import Parts
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeRetriever

K = 10
WRONG, FALSE = 4.0, 8.0
"""What a wrong and a false answer cost, where a right one brings 1."""
SHARE_LOST, SHARE_CORRECT, SHARE_SHOWN = 0.02, 2 / 48, 24 / 48
"""Most answerable questions that the lower threshold may call Incorrect, most unanswerable ones
that the upper one may call Correct, and most of those for which closest passages may be shown."""
_MOST = 4
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


class Outcome(NamedTuple):
    """What became of one question."""

    action: str
    knowledge: str
    """The strips kept, whatever the action."""
    answer: str
    """Empty if nothing is sure."""
    shown: tuple[str, ...]
    """The passages of the answer, or the closest ones."""


class Read(NamedTuple):
    """One question with everything that thresholds decide about."""

    asked: Asked
    grade: float
    """Score of the best document."""
    score: float
    """Score of the best quotation."""
    kept: str
    sure: tuple[str, ...]
    """The passages of an answer, if it is sure."""
    closest: tuple[str, ...]
    """The passages that are shown if none is."""


class Numbers(NamedTuple):
    """The thresholds that are fitted."""

    upper: float
    lower: float
    quote: float
    closest: float


def main() -> None:
    """Retrieve, answer, print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("docs", type=Path, help="folder with corpus/ and questions.jsonl")
    parser.add_argument("--cache", type=Path, help="keep what was retrieved in this file")
    parser.add_argument("--details", action="store_true", help="print each question's outcome")
    given = parser.parse_args()
    asked, reader = retrieved(given.docs, given.cache), ReaderEvaluator.packaged()
    results = {
        "as shipped": [answered(reader, one) for one in asked],
        "fitted": judged_by_others([read(reader, one) for one in asked]),
    }
    print(tables(asked, results))
    if given.details:
        for name, outcomes in results.items():
            for one, outcome in zip(asked, outcomes, strict=True):
                print(name, one.id, stage(one, outcome), *outcome, sep=" | ")


def retrieved(docs: Path, cache: Path | None) -> list[Asked]:
    """Return the questions with ten documents each, from `cache` where it holds them."""
    rows = [row for _, row in numbered_objects(docs / "questions.jsonl")]
    known: dict[str, Mapping[str, Any]] = {}
    if cache is not None and cache.exists():
        known = {row["id"]: row for row in json.loads(cache.read_text(encoding="utf-8"))}
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        asked = [row for row in rows if row["corpus"] == corpus]
        if not all(row["id"] in known for row in asked):
            _retrieve(docs / "corpus" / corpus, asked)
            known |= {row["id"]: row for row in asked}
            if cache is not None:
                cache.write_text(json.dumps(list(known.values())), encoding="utf-8")
    return [
        Asked(
            row["id"], row["corpus"], row["question"], tuple(row["answers"]),
            tuple(row["evidence"]), row["kind"], tuple(Document(**one) for one in row["documents"]),
        )
        for row in (known[one["id"]] for one in rows)
    ]  # fmt: skip


def _retrieve(corpus: Path, rows: Sequence[dict[str, Any]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_index(folder, packaged_encoder()) as index,
    ):
        index_paths([corpus], index)
        retriever = IndexRetriever(index, K)
        for row in rows:
            row["documents"] = [
                {"page_content": found.page_content, "metadata": found.metadata}
                for found in retriever.invoke(row["question"])
            ]


def answered(reader: ReaderEvaluator, one: Asked) -> Outcome:
    """Answer a question with the graph as it is shipped."""
    parts = Parts(
        retriever=FakeRetriever(documents=list(one.documents)),
        evaluator=reader,
        quoter=ExtractiveAnswerer(reader),
    )
    settings = Settings()
    state = cast("State", build_crag(parts).invoke({"question": one.question}, context=settings))
    knowledge = "\n".join(strip["text"] for strip in kept_strips(state))
    if state["action"] == "incorrect":  # Its documents are not refined.
        knowledge = read(reader, one).kept
    answer = state["answer"] if state["outcome"] == "answered" else ""
    return Outcome(
        str(state["action"]), knowledge, answer, tuple(_QUOTATION.findall(state["answer"]))
    )


def read(reader: ReaderEvaluator, one: Asked) -> Read:
    """Read the documents of a question as the graph does."""
    settings = Settings()
    passages = [passage_of(document, settings.variant.titles) for document in one.documents]
    readings = reader.read(one.question, passages)
    strips = strips_in_context(one.question, one.documents, readings, settings)
    kept = [strip for strip in strips if strip["kept"]]
    quoted = partial(
        quotations_in, one.question, kept, most=_MOST, closest=-1, similarity=reader.similarity
    )
    sure, closest = quoted(threshold=-1), quoted(threshold=math.inf)
    return Read(
        one,
        max(reading["score"] for reading in readings),
        sure[0].score if sure else LOWEST,
        "\n".join(strip["text"] for strip in kept),
        tuple(found.text for found in sure),
        tuple(found.text for found in closest),
    )


def judged_by_others(found: Sequence[Read]) -> list[Outcome]:
    """Judge the questions of each corpus by thresholds that are fitted on all others."""
    numbers = {
        corpus: fitted([one for one in found if one.asked.corpus != corpus] or found)
        for corpus in dict.fromkeys(one.asked.corpus for one in found)
    }
    return [concluded(one, numbers[one.asked.corpus]) for one in found]


def fitted(found: Sequence[Read]) -> Numbers:
    """Return the number that brings most for sure answers, and those of the allowed shares."""

    def gain(one: Read) -> float:
        if is_right("\n".join(one.sure), one.asked):
            return 1.0
        return -WRONG if one.asked.answerable else -FALSE

    quote = max(
        [*_between([one.score for one in found]), 1.0],
        key=lambda least: (sum(gain(one) for one in found if one.score >= least), least),
    )
    able = [one for one in found if one.asked.answerable]
    unable = [one for one in found if not one.asked.answerable]
    return Numbers(
        upper=_allowing([one.grade for one in unable], SHARE_CORRECT),
        lower=-_allowing([-one.grade for one in able], SHARE_LOST),
        quote=quote,
        closest=_allowing([one.score for one in unable], SHARE_SHOWN),
    )


def _allowing(scores: Sequence[float], share: float) -> float:
    """Return the threshold that this share of the scores, at most, reaches."""
    cuts = [*_between([*scores, 1.0]), 1.0]
    return next(cut for cut in cuts if sum(s >= cut for s in scores) <= share * len(scores))


def _between(scores: Sequence[float]) -> list[float]:
    """Return the thresholds that divide the scores, on the scale of their log-odds."""
    odds = [math.atanh(max(-1 + 1e-12, min(1 - 1e-12, score))) for score in sorted(set(scores))]
    return [math.tanh((low + high) / 2) for low, high in pairwise(odds)]


def concluded(one: Read, numbers: Numbers) -> Outcome:
    """Decide by these numbers."""
    action = "correct" if one.grade >= numbers.upper else "ambiguous"
    action = "incorrect" if one.grade < numbers.lower else action
    if action != "incorrect" and one.score >= numbers.quote:
        return Outcome(action, one.kept, "\n".join(one.sure), one.sure)
    is_close = action != "incorrect" and one.score >= numbers.closest
    return Outcome(action, one.kept, "", one.closest if is_close else ())


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
    wanted = [normal(part) for part in one.answers][one.kind == "yes-no" :]
    found = normal(answer)
    held = [re.search(rf"(?<!\w){re.escape(part)}(?!\w)", found) is not None for part in wanted]
    return bool(held) and (all(held) if one.kind in _ALL_PARTS else any(held))


Judged = Sequence[tuple[Asked, Outcome]]


def tables(asked: Sequence[Asked], results: Mapping[str, Sequence[Outcome]]) -> str:
    """Return Markdown tables: what became of all questions, and where those of a corpus failed."""
    judged = {name: list(zip(asked, found, strict=True)) for name, found in results.items()}
    counted = {name: dict(_counts(found)) for name, found in judged.items()}
    parts = [table(("", *counted["as shipped"]), [[n, *c.values()] for n, c in counted.items()])]
    corpora = list(dict.fromkeys(one.corpus for one in asked))
    for name, found in judged.items():
        counts = Counter((stage(one, outcome), one.corpus) for one, outcome in found)
        stages = dict.fromkeys(kind for kind, _ in sorted(counts))
        rows = [[kind, *(str(counts[kind, corpus]) for corpus in corpora)] for kind in stages]
        parts.append(table((name, *corpora), rows))
    return "\n\n".join(parts)


def _counts(judged: Judged) -> Iterator[tuple[str, str]]:
    able = [(one, outcome) for one, outcome in judged if one.answerable]
    unable = [outcome for one, outcome in judged if not one.answerable]
    before = sum(len(text.split()) for one, _ in judged for text in _texts(one))
    words = [len(" ".join(outcome.shown).split()) for _, outcome in able if outcome.shown]
    stages = Counter(stage(one, outcome) for one, outcome in able)
    right = [is_right(outcome.answer, one) for one, outcome in able]
    yield "answerable", str(len(able))
    yield "evidence retrieved", str(sum(holds_evidence("\n".join(_texts(a)), a) for a, _ in able))
    yield "kept", str(sum(holds_evidence(outcome.knowledge, one) for one, outcome in able))
    kept = sum(len(outcome.knowledge.split()) for _, outcome in judged)
    yield "words kept", f"{100 * kept / max(1, before):.0f} %"
    yield "right", str(sum(right))
    yield "wrong", str(stages["quoting: something else quoted"])
    first = [is_right("".join(outcome.shown[:1]), one) for one, outcome in able]
    yield "first passage right", str(sum(first))
    shown = [is_right("\n".join(outcome.shown), one) for one, outcome in able]
    yield "among those shown", str(sum(shown))
    yield "unanswerable", str(len(unable))
    yield "false answers", str(sum(bool(outcome.answer) for outcome in unable))
    yield "closest shown", str(sum(bool(o.shown and not o.answer) for o in unable))
    yield "Correct", f"{_share(able, 'correct')} and {sum(o.action == 'correct' for o in unable)}"
    yield "Incorrect, answerable", str(_share(able, "incorrect"))
    yield "words shown, median", f"{statistics.median(words):g}" if words else "-"


def _texts(one: Asked) -> list[str]:
    return [document.page_content for document in one.documents]


def _share(judged: Judged, action: str) -> int:
    return sum(outcome.action == action for _, outcome in judged)


def stage(one: Asked, outcome: Outcome) -> str:
    """Name the stage that a question failed at, or say that it did not."""
    if not one.answerable:
        return "answered without evidence" if outcome.answer else "nothing to answer"
    if outcome.answer:
        return "right" if is_right(outcome.answer, one) else "quoting: something else quoted"
    if not holds_evidence("\n".join(_texts(one)), one):
        return "retrieval: evidence not among the ten"
    if outcome.action == "incorrect":
        return "action: documents discarded"
    if not holds_evidence(outcome.knowledge, one):
        return "refinement: evidence dropped"
    return "quoting: nothing quoted"


if __name__ == "__main__":
    main()
