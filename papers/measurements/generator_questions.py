"""The questions that generators are measured on, with their documents, and verdicts of answers.

Four sets, each question with the ten documents that every method gets:

- `docs`: 150 questions over six corpora of documentation, 48 of them answered nowhere, with the
  documents that hybrid search finds (`docs_questions.py`);
- `popqa`: 100 questions with the five passages published for them, and five that BM25 finds in
  Wikipedia's introductions, of other pages and without an answer;
- `covidqa`: 200 questions, each with paragraphs of one scientific paper;
- `squad`: 200 questions, each with the paragraph that answers it among nine that do not: of the
  same article where it has enough, else of others, those that share most words with the question.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from documentation import Asked, is_right, normal, retrieved
from langchain_core.documents import Document

from crag.answering.citations import without_citations
from crag.asking.evaluate import normalised_match
from crag.papers.experiments.corpus import CorpusSearcher
from crag.papers.experiments.examples import Example

SetName = Literal["docs", "popqa", "covidqa", "squad"]
Verdict = Literal["right", "other words", "wrong", "wordless", "declined", "made up"]
"""Right: by string match. Other words: the gold answer's words stand in it, in another order or
with others between them. Made up: an answer where there is none; declined covers both kinds."""
TEN = 10
DRAWN = 200
"""Questions of COVID-QA and of SQuAD."""
SEED = 0
ENOUGH = 0.75
"""Share of the words of a gold answer that make an answer right in other words."""
_STEM = 5
"""First letters by which two words count as the same."""
_SMALL = frozenset(
    """
    a an and are as at be been but by can do does for from has have if in into is it its may of on
    or so such than that the their then there these they this to was were will with you your we our
    i me my
    """.split()  # noqa: SIM905 - a list of them fills a page
)
_WORD = re.compile(r"[a-z0-9]+(?:[.'][a-z0-9]+)*")
_ALL_PARTS = {"list", "comparison", "two-sentences"}


def load(name: SetName, data: Path, cache: Path) -> list[Example]:
    """Return the questions of a set; `cache` keeps what was retrieved for the documentation.

    `Example.extra` has `kind` and `evidence` of the documentation.
    """
    match name:
        case "docs":
            return [_of_documentation(one) for one in retrieved(data / "docs", cache)]
        case "popqa":
            return list(_popqa(data))
        case "covidqa":
            rows = _rows(data / "qa/covidqa_dev.jsonl")
            return [_plain(row, row["documents"][:TEN]) for row in _drawn(rows)]
        case "squad":
            return list(_squad(_rows(data / "reading/squad_dev.jsonl")))


def _of_documentation(one: Asked) -> Example:
    extra = {"kind": one.kind, "evidence": list(one.evidence), "corpus": one.corpus}
    answers = (one.answers,) if one.answers else ()
    return Example(one.id, "qa", one.question, answers, one.documents, extra=extra)


def _popqa(data: Path) -> Iterator[Example]:
    searcher = CorpusSearcher([data / "corpus/wikipedia.jsonl"])
    for row in _rows(data / "qa/popqa_dev.jsonl"):
        found = searcher.search(row["question"], 4 * TEN)
        others = [
            {"title": hit.title, "text": hit.text}
            for hit in found
            if hit.title != row["subject_title"] and not normalised_match(hit.text, row["answers"])
        ]
        yield _plain(row, [*row["documents"], *others][:TEN], (row["subject_title"],))


def looking_answerable(data: Path) -> list[Example]:
    """Return questions of SQuAD 2.0 that a paragraph about their subject does not answer."""
    return list(_squad(_rows(data / "reading/squad2_unanswerable.jsonl"), answerable=False))


def _squad(rows: Sequence[Mapping[str, Any]], *, answerable: bool = True) -> Iterator[Example]:
    asked = [
        {**question, "title": row["title"], "text": row["text"]}
        for row in rows
        for question in row["questions"]
        if bool(question["answers"]) == answerable
    ]
    for row in _drawn(asked):
        answers = list(dict.fromkeys(answer["text"] for answer in row["answers"]))
        rivals = [
            other
            for other in rows
            if other["text"] != row["text"] and not normalised_match(other["text"], answers)
        ]
        shared = _sharing(row["question"])
        rivals.sort(key=lambda other: (other["title"] != row["title"], -shared(other["text"])))
        documents = [{"title": row["title"], "text": row["text"]}, *rivals[: TEN - 1]]
        random.Random(row["id"]).shuffle(documents)  # noqa: S311 - no secret
        yield _plain({**row, "answers": answers}, documents)


def _sharing(question: str) -> Callable[[str], int]:
    wanted = _stems(question)
    return lambda text: len(wanted & _stems(text))


def _plain(
    row: Mapping[str, Any], documents: Sequence[Mapping[str, Any]], titles: tuple[str, ...] = ()
) -> Example:
    found = tuple(Document(one["text"], metadata={"title": one["title"]}) for one in documents)
    answers = (tuple(row["answers"]),) if row["answers"] else ()
    return Example(str(row["id"]), "qa", row["question"], answers, found, gold_titles=titles)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _drawn(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.Random(SEED).sample(list(rows), min(DRAWN, len(rows)))  # noqa: S311 - no secret


def verdict(example: Example, answer: str, *, abstained: bool) -> Verdict:
    """Judge an answer."""
    if abstained:
        return "declined"
    said = without_citations(answer)
    if not is_worded(said):
        return "wordless"
    if not example.answers:
        return "made up"
    if matches(example, said):
        return "right"
    return "other words" if in_other_words(example, said) else "wrong"


def is_worded(text: str) -> bool:
    """Say whether a text without its citations has a letter or a digit."""
    return any(character.isalnum() for character in text)


def matches(example: Example, text: str) -> bool:
    """Say whether a text holds what is asked for, as whole words."""
    if example.extra.get("kind") is None:
        return normalised_match(text, [answer for group in example.answers for answer in group])
    return is_right(text, _asked(example))


def in_other_words(example: Example, text: str) -> bool:
    """Say whether the words of a gold answer stand in a text, in any order.

    For lists, comparisons and two-sentences those of every part, else of any one. A yes or a no
    counts where the text begins with it. Words are compared by their first letters.
    """
    kind, (parts, *_) = example.extra.get("kind"), example.answers
    said = _stems(text)
    first = _WORD.search(normal(text))
    if kind == "yes-no" and first is not None and first[0] in {"yes", "no"}:
        return first[0] == parts[0]
    wanted = [
        stems for part in (parts[1:] if kind == "yes-no" else parts) if (stems := _stems(part))
    ]
    held = [len(stems & said) / len(stems) >= ENOUGH for stems in wanted]
    return bool(held) and (all(held) if kind in _ALL_PARTS else any(held))


def knows(example: Example, text: str) -> bool:
    """Say whether a text holds an answer: the evidence of the documentation, else a gold answer."""
    evidence = example.extra.get("evidence")
    if isinstance(evidence, list):
        found = normal(text)
        return any(normal(str(excerpt)) in found for excerpt in evidence)
    return matches(example, text)


def _asked(example: Example) -> Asked:
    evidence: Any = example.extra.get("evidence") or ()
    return Asked(
        example.id, str(example.extra.get("corpus")), example.question,
        tuple(answer for group in example.answers for answer in group),
        tuple(map(str, evidence)), str(example.extra.get("kind")), example.documents,
    )  # fmt: skip


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(normal(text)) if word not in _SMALL}
