"""Judge what came of questions: `crag evaluate`.

A question says what is right by its answers, or by the files that hold the answer, or by being
marked as unanswerable. Answers are compared as in SQuAD: without case, punctuation and articles.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import unquote

from crag.answering.citations import strips_of
from crag.answering.context import kept_strips
from crag.asking.many import Question, Row, State
from crag.correction.provenance import source_of
from crag.state import reflected

Verdict = Literal["right", "wrong", "abstained", "unjudged", "failed"]
"""Unjudged: it was answered, and the file does not say what is right."""
Lost = Literal["not retrieved", "not kept", "not sure", "not answered", ""]
"""Where the evidence of a failure was lost: no document held it, no kept strip did, it stands in
the passages that are shown as likely, or it was in the knowledge and not in the answer. Empty if it
was not lost, or nobody knows."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TYPOGRAPHIC = re.compile(r"[^\w\s!-~]")
"""Quotation marks and dashes that `string.punctuation` does not include."""


def judged(question: Question, row: Row, state: State) -> Row:
    """Return the row of an answer with what is right about it.

    It has, besides what `crag.asking.many` gives it: `verdict` and `lost`; `documents`, each with
    its place, text and score; `strips`, the kept ones first; `retrieved` and `kept`, whether a
    document and a kept strip hold the evidence (None if nobody knows).
    """
    documents = [
        {**source_of(one, at), "text": one.page_content, "score": one.metadata.get("score")}
        for at, one in enumerate(state.get("documents") or [])
    ]
    kept = kept_strips(state) if state else []  # type: ignore[arg-type]
    if not kept:  # Self-RAG reads whole passages.
        kept = [strip for one in reflected(state).get("passages", []) for strip in strips_of(one)]
    wanted = question.evidence or question.answers
    retrieved = held = None
    if state and (wanted or question.files):
        retrieved = any(_holds(question, one["url"], one["text"]) for one in documents)
        held = any(_holds(question, one["source"]["url"], one["text"]) for one in kept)
    verdict = _verdict(question, row)
    lost: Lost = ""
    if verdict in {"wrong", "abstained"} and question.answerable and retrieved is not None:
        shown = row["outcome"] == "likely" and normalised_match(row["answer"], wanted)
        lost = "not kept" if retrieved else "not retrieved"
        if held:  # By a strip from the web, too.
            lost = "not sure" if shown else "not answered"
    return {
        **row,
        **question.model_dump(mode="json", include={"answers", "files", "answerable"}),
        "verdict": verdict,
        "lost": lost,
        "documents": documents,
        "strips": [*kept, *(one for one in state.get("strips") or [] if not one["kept"])],
        "retrieved": retrieved,
        "kept": held,
    }


def _verdict(question: Question, row: Row) -> Verdict:
    if row["error"]:
        return "failed"
    is_sure = row["outcome"] == "answered"  # What is likely claims nothing.
    if not question.answerable:
        return "wrong" if is_sure else "right"
    if row["outcome"] == "not_found":
        return "abstained"
    if question.answers:
        right = normalised_match(row["answer"], question.answers)
    elif question.files:
        right = any(_is_of(one["source"]["url"], question.files) for one in row["citations"])
    else:
        return "unjudged"
    return "right" if right else "wrong" if is_sure else "abstained"


def _holds(question: Question, url: str, text: str) -> bool:
    if wanted := question.evidence or question.answers:
        return normalised_match(text, wanted)
    return _is_of(url, question.files)


def _is_of(url: str, files: Sequence[str]) -> bool:
    place = "/" + unquote(url.partition("#")[0]).strip("/")
    return any(place.endswith("/" + file.removeprefix("./").strip("/")) for file in files)


def normalise(text: str) -> str:
    """Lower-case and remove punctuation, articles and extra spaces, as SQuAD's script does."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def normalised_match(prediction: str, answers: Sequence[str]) -> bool:
    """Return whether the words of any answer occur in the prediction, both normalised.

    Only whole words match: `pol` is not in `police`, so this can be lower than the official match.
    An answer of punctuation or articles only matches nothing.
    """
    said = f" {normalise(_TYPOGRAPHIC.sub('', prediction))} "
    words = (normalise(_TYPOGRAPHIC.sub("", answer)) for answer in answers)
    return any(f" {one} " in said for one in words if one)


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Return counts, and rates as shares from 0 to 1, None without anything to count.

    `right` is of those that are judged; an abstention is right only for an unanswerable question.
    `kept` is of those whose documents held the evidence. `llm_calls`, `tokens` and `seconds` are
    the means of a question.
    """
    judged = [row["verdict"] == "right" for row in rows if row["verdict"] != "unjudged"]
    used = [row["usage"] or {} for row in rows]
    names = {"verdicts": "verdict", "outcomes": "outcome", "actions": "action", "lost": "lost"}
    return {
        "questions": len(rows),
        **{
            name: dict(Counter(row[key] for row in rows if row[key])) for name, key in names.items()
        },
        "right": _mean(judged),
        "retrieved": _mean([row["retrieved"] for row in rows]),
        "kept": _mean([row["kept"] for row in rows if row["retrieved"]]),
        "llm_calls": _mean([one.get("llm_calls", 0) for one in used]),
        "tokens": _mean([one.get("input_tokens", 0) + one.get("output_tokens", 0) for one in used]),
        "seconds": _mean([row["seconds"] for row in rows]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    given = [float(value) for value in values if value is not None]
    return sum(given) / len(given) if given else None
