r"""Measure what correction does over real documentation, with the embedded default and no web.

    python papers/measurements/docs_questions.py DOCS [--cache FILE] [--reader FOLDER] \
        [--only NAME…]

DOCS is a folder with corpus/NAME/… and questions.jsonl; each question has gold `answers`, verbatim
`evidence` and a kind, and 48 of 150 have neither. Every corpus is indexed as `crag index` does it,
and ten documents are retrieved for each question; FILE keeps them for the next run.

`today` is the graph as it is shipped. The reader reads each document once (`docs_reading.py`);
its thresholds are fitted on five corpora and measured on the sixth.

A question's evidence is held by a text that contains one of the excerpts. An answer is right if it
contains an excerpt, or what `answers` asks for: every string for lists, comparisons and
two-sentences, else any one, as whole words; "yes" and "no" are not looked for. Texts are compared
in lower case, without HTML tags, the names of reStructuredText roles, quotation marks, backticks,
asterisks and underscores, white space folded.
"""

import argparse
import json
import re
import shutil
import statistics
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document

from crag.answering.context import kept_strips
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag
from crag.models.encoder import packaged_encoder
from crag.parts import Evaluator, Parts, Quoter
from crag.retrieval import DocumentIndex, index_paths
from crag.retrieval.retriever import IndexRetriever
from crag.settings import Settings
from crag.state import State, Strip
from crag.testing import FakeRetriever

K = 10
_ALL_PARTS = {"list", "comparison", "two-sentences"}
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_ROLE = re.compile(r":[\w:+.-]+:(?=`)")
_QUOTES = re.compile(r"[`*_\"'‘’“”]")


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
    retrieved: bool
    """The ten documents hold the evidence."""
    kept: bool
    """The knowledge after refinement does, whatever the action."""
    words: int
    """Words of that knowledge."""
    words_before: int
    """Words of the documents."""
    answer: str
    abstained: bool
    right: bool
    first: bool
    """The first passage that is shown holds the answer, sure or not."""
    shown: str
    """What is shown: an answer, or at most two closest passages."""


def main() -> None:
    """Retrieve, answer, print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("docs", type=Path)
    parser.add_argument("--cache", type=Path, help="keep what was retrieved in this file")
    parser.add_argument("--reader", help="name or folder of a reader to measure as well")
    parser.add_argument("--only", nargs="*", default=[], help="corpora to take")
    parser.add_argument("--details", action="store_true", help="print each question's outcome")
    parser.add_argument("--without-today", action="store_true", help="measure the reader only")
    given = parser.parse_args()
    asked = retrieved(given.docs, given.cache, given.only)
    results: dict[str, list[Outcome]] = {}
    if not given.without_today:
        results["today"] = today(asked, load_evaluator())
    if given.reader:
        from docs_reading import measured

        results |= measured(asked, given.reader)
    print(tables(asked, results))
    if given.details:
        for name, outcomes in results.items():
            for one, outcome in zip(asked, outcomes, strict=True):
                print(name, one.id, *outcome, sep=" | ")


def retrieved(docs: Path, cache: Path | None, only: Sequence[str] = ()) -> list[Asked]:
    """Return the questions with ten documents each, from `cache` where it holds them."""
    lines = (docs / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
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


def today(asked: Sequence[Asked], evaluator: Evaluator) -> list[Outcome]:
    """Answer every question with the graph as it is shipped."""
    return [_today(one, evaluator) for one in asked]


def _today(one: Asked, evaluator: Evaluator) -> Outcome:
    parts = Parts(
        retriever=FakeRetriever(documents=list(one.documents)),
        evaluator=evaluator,
        quoter=ExtractiveAnswerer(evaluator),
    )
    settings = Settings()
    state = build_crag(parts).invoke({"question": one.question}, context=settings)
    action, strips = state["action"], kept_strips(cast("State", state), settings)
    if action == "incorrect":  # Its documents are not refined, so that there is nothing to count.
        refined = settings.model_copy(update={"only": "correct"})
        again = build_crag(parts).invoke({"question": one.question}, context=refined)
        strips = kept_strips(cast("State", again), refined)
    knowledge = [strip["text"] for strip in strips]
    passages = shown_passages(
        parts.quoter, one.question, kept_strips(cast("State", state), settings)
    )
    return outcome(one, action, knowledge, "" if state["abstained"] else state["answer"], passages)


def shown_passages(quoter: Quoter | None, question: str, strips: Sequence[Strip]) -> list[str]:
    """Return the passages that an answer leads with, or the closest ones, the first one first."""
    found = quoter.quote(question, strips) if quoter and strips else []
    return [quoted.text for quoted in found if not quoted.further]


def outcome(
    one: Asked, action: str, knowledge: Sequence[str], answer: str, passages: Sequence[str]
) -> Outcome:
    """Judge knowledge, answer and what is shown; an empty answer is an abstention."""
    texts = [document.page_content for document in one.documents]
    return Outcome(
        action=action,
        retrieved=holds_evidence("\n".join(texts), one),
        kept=holds_evidence("\n".join(knowledge), one),
        words=count_words(knowledge),
        words_before=count_words(texts),
        answer=answer,
        abstained=not answer,
        right=is_right(answer, one),
        first=is_right("".join(passages[:1]), one),
        shown="\n".join(passages),
    )


def count_words(texts: Sequence[str]) -> int:
    """Count what white space divides."""
    return sum(len(text.split()) for text in texts)


def normal(text: str) -> str:
    """Fold what the gold texts and ours may differ in."""
    plain = _ROLE.sub("", _TAG.sub("", unicodedata.normalize("NFKC", text)))
    return " ".join(_QUOTES.sub("", plain.lower()).split())


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


def tables(asked: Sequence[Asked], results: Mapping[str, Sequence[Outcome]]) -> str:
    """Return Markdown tables: all questions, by corpus, by kind."""
    parts: list[str] = []
    for title, key in (("", None), ("corpus", "corpus"), ("kind", "kind")):
        parts += ["", *_table(title, key, asked, results)]
    said = [_SAID_HEAD, "|---" * 10 + "|"]
    said += [_said(name, asked, outcomes) for name, outcomes in results.items()]
    return "\n".join([*parts[1:], "", *said, "", *_stages(asked, results)])


_SAID_HEAD = (
    "| | first passage right | answered or among the closest | sure and wrong | sure, unanswerable "
    "| closest shown, unanswerable | Correct, answerable | Correct, unanswerable "
    "| Incorrect, answerable | words shown, median |"
)


def _said(name: str, asked: Sequence[Asked], outcomes: Sequence[Outcome]) -> str:
    """Count what is said, and how surely."""
    both = list(zip(asked, outcomes, strict=True))
    able = [(one, outcome) for one, outcome in both if one.answerable]
    unable = [outcome for one, outcome in both if not one.answerable]
    words = [count_words([outcome.shown]) for _, outcome in able if outcome.shown]
    cells = [
        sum(outcome.first for _, outcome in able),
        sum(is_right(outcome.shown, one) for one, outcome in able),
        sum(not outcome.abstained and not outcome.right for _, outcome in able),
        sum(not outcome.abstained for outcome in unable),
        sum(outcome.abstained and bool(outcome.shown) for outcome in unable),
        sum(outcome.action == "correct" for _, outcome in able),
        sum(outcome.action == "correct" for outcome in unable),
        sum(outcome.action == "incorrect" for _, outcome in able),
        f"{statistics.median(words):g}" if words else "-",
    ]
    return f"| {name} | {' | '.join(map(str, cells))} |"


def stage(one: Asked, outcome: Outcome) -> str:
    """Name the stage that a question failed at, or say that it did not."""
    if not one.answerable:
        return "nothing to answer" if outcome.abstained else "answered without evidence"
    if outcome.right:
        return "right"
    if not outcome.retrieved:
        return "retrieval: evidence not among the ten"
    if outcome.action == "incorrect":
        return "action: documents discarded"
    if not outcome.kept:
        return "refinement: evidence dropped"
    return "quoting: nothing quoted" if outcome.abstained else "quoting: something else quoted"


def _stages(asked: Sequence[Asked], results: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Count where questions failed, by corpus."""
    for name, outcomes in results.items():
        found = Counter(
            (stage(one, outcome), one.corpus) for one, outcome in zip(asked, outcomes, strict=True)
        )
        corpora = list(dict.fromkeys(one.corpus for one in asked))
        yield f"| {name} | {' | '.join(corpora)} | all |"
        yield "|---" * (len(corpora) + 2) + "|"
        for kind in dict.fromkeys(kind for kind, _ in sorted(found, key=str)):
            counts = [found[kind, corpus] for corpus in corpora]
            yield f"| {kind} | {' | '.join(map(str, counts))} | {sum(counts)} |"
        yield ""


_HEAD = (
    "evidence retrieved",
    "kept",
    "words kept",
    "right",
    "wrong",
    "abstained",
    "unanswerable",
    "false answers",
)


def _table(
    title: str, key: str | None, asked: Sequence[Asked], results: Mapping[str, Sequence[Outcome]]
) -> Iterator[str]:
    yield f"| {title} | | answerable | {' | '.join(_HEAD)} |"
    yield "|---" * 11 + "|"
    groups = dict.fromkeys(getattr(one, key) if key else "all" for one in asked)
    for group in groups:
        for name, outcomes in results.items():
            found = [
                (one, outcome)
                for one, outcome in zip(asked, outcomes, strict=True)
                if key is None or getattr(one, key) == group
            ]
            yield f"| {group} | {name} | {_cells(found)} |"


def _cells(found: Sequence[tuple[Asked, Outcome]]) -> str:
    able = [outcome for one, outcome in found if one.answerable]
    unable = [outcome for one, outcome in found if not one.answerable]
    retrieved_ = [outcome for outcome in able if outcome.retrieved]

    def count(outcomes: Sequence[Outcome], test: Callable[[Outcome], bool]) -> int:
        return sum(map(test, outcomes))

    words = sum(outcome.words for _, outcome in found)
    before = sum(outcome.words_before for _, outcome in found)
    cells = [
        len(able),
        len(retrieved_),
        count(retrieved_, lambda o: o.kept),
        f"{100 * words / before:.0f} %",
        count(able, lambda o: o.right),
        count(able, lambda o: not o.right and not o.abstained),
        count(able, lambda o: o.abstained),
        len(unable),
        count(unable, lambda o: not o.abstained),
    ]
    return " | ".join(map(str, cells))


if __name__ == "__main__":
    main()
