r"""Measure how well the attributor tells sentences that a strip supports from others.

Sentences are made from the questions of SQuAD's articles (`reading/squad_dev.jsonl`): what asks
gives way to the answer. Each is judged by the strips of its paragraph and of three others of the
article:

- supported: the right answer; "bare answer" is the answer alone, a sentence of a few words;
- elsewhere: the right answer, by the strips of the other paragraphs alone;
- swapped: another answer of the article, of the same kind (figure, name, other), that is not in
  the paragraph;
- swapped within: the same with an answer that is in the paragraph.

The threshold is the best one for half of the articles; the figures are those of the other half.

    python papers/measurements/attribution.py --data ../shared/data/reading/squad_dev.jsonl \
        --per-article 14
"""

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crag.answering.support import WordAttributor
from crag.correction.strips import decompose
from crag.evaluators import ReaderAttributor, ReaderEvaluator
from crag.papers.training.records import read_objects
from crag.parts import Attributor, Passage

SEED = 1
OTHERS, LONGEST_ANSWER = 3, 8
"""Other paragraphs of the article; words of an answer."""
_ASKS = re.compile(
    r"(?:(?P<preposition>in|on|at|to|from|by|for|of|with|during) )?"
    r"(?P<word>what|which|whom?|when|where|how (?:many|much)|whose)\b"
    r"(?: (?:year|country|city|person|university|company|team|date|century|state|type|kind|"
    r"percentage|number|name|day|month|people|group|king|decade|album|school|river|war))?\s*",
    re.IGNORECASE,
)
_VERB = re.compile(r"(?P<verb>is|was|were|are|did|does|do|has|have|had|can|could|will|would)\b\s*")


class Case(NamedTuple):
    """A sentence with the strips that it is judged by."""

    kind: str
    question: str
    sentence: str
    passages: list[Passage]
    holders: list[int]
    """Those of `passages` that hold the answer."""
    article: str


def main() -> None:
    """Print the thresholds, and for each kind the share that is called supported."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-article", type=int, default=14)
    options = parser.parse_args()
    cases = list(_cases(options.data, options.per_article))
    articles = sorted({case.article for case in cases})
    fitted_on = set(articles[::2])
    fitting = [case for case in cases if case.article in fitted_on]
    held_out = [case for case in cases if case.article not in fitted_on]
    print(f"{len(cases)} sentences of {len(articles)} articles, {len(held_out)} held out")
    for attributor in (WordAttributor(), ReaderAttributor(ReaderEvaluator.packaged())):
        _report(attributor, fitting, held_out)


def _report(attributor: Attributor, fitting: Sequence[Case], held_out: Sequence[Case]) -> None:
    fitted = _best_threshold([(case, max(_degrees(attributor, case))) for case in fitting])
    print(f"\n{type(attributor).__name__}: threshold {attributor.threshold}, best {fitted:.2f}")
    judged = [(case, _degrees(attributor, case)) for case in held_out]
    called: dict[str, list[bool]] = {}
    for case, degrees in judged:
        called.setdefault(case.kind, []).append(max(degrees) >= attributor.threshold)
    for kind, verdicts in called.items():
        print(f"  {kind:<16}{sum(verdicts) / len(verdicts):6.3f} of {len(verdicts)} supported")
    right = sum(called["supported"])
    wrong = sum(called["elsewhere"]) + sum(called["swapped"])
    print(
        f"  precision {right / (right + wrong):.3f}, recall {right / len(called['supported']):.3f}"
    )
    found = [
        degrees.index(max(degrees)) in case.holders
        for case, degrees in judged
        if case.kind == "supported" and max(degrees) >= attributor.threshold
    ]
    print(f"  the best strip holds the answer: {sum(found) / len(found):.3f} of {len(found)}")


def _degrees(attributor: Attributor, case: Case) -> list[float]:
    return attributor.support(case.question, [case.sentence], case.passages)[0]


def _best_threshold(judged: Sequence[tuple[Case, float]]) -> float:
    """Return the threshold with the highest share of supported less that of other sentences."""
    right = [degree for case, degree in judged if case.kind == "supported"]
    wrong = [degree for case, degree in judged if case.kind in {"elsewhere", "swapped"}]

    def gain(threshold: float) -> float:
        kept = sum(degree >= threshold for degree in right) / len(right)
        return kept - sum(degree >= threshold for degree in wrong) / len(wrong)

    return max((step / 100 for step in range(5, 96)), key=gain)


def _cases(path: Path, per_article: int) -> Iterator[Case]:
    draw = random.Random(SEED)  # noqa: S311 - a sample, no secret
    articles: dict[str, list[dict[str, Any]]] = {}
    for paragraph in read_objects(path):
        articles.setdefault(paragraph["title"], []).append(paragraph)
    for title, paragraphs in articles.items():
        asked = [
            (place, one["question"], one["answers"][0]["text"])
            for place, paragraph in enumerate(paragraphs)
            for one in paragraph["questions"]
            if one["answers"]
        ]
        draw.shuffle(asked)
        answers = [answer for _, _, answer in asked]
        fitting = [one for one in asked if len(one[2].split()) <= LONGEST_ANSWER]
        stated = [one for one in fitting if statement(one[1], one[2])]
        for place, question, answer in stated[:per_article]:
            yield from _cases_of(title, paragraphs, place, question, answer, answers, draw)


def _cases_of(  # noqa: PLR0913, PLR0917 - one question and what is around it
    title: str,
    paragraphs: Sequence[dict[str, Any]],
    place: int,
    question: str,
    answer: str,
    answers: Sequence[str],
    draw: random.Random,
) -> Iterator[Case]:
    own = paragraphs[place]["text"]
    others = draw.sample([p["text"] for at, p in enumerate(paragraphs) if at != place], OTHERS)
    strips = [Passage(title, text) for text in decompose(own)]
    elsewhere = [Passage(title, text) for other in others for text in decompose(other)]
    holders = [place for place, strip in enumerate(strips) if answer in strip.text]
    passages = [*strips, *elsewhere]
    said = statement(question, answer)
    yield Case("supported", question, said, passages, holders, title)
    yield Case("bare answer", question, f"{answer}.", passages, holders, title)
    yield Case("elsewhere", question, said, elsewhere, [], title)
    for kind, is_within in (("swapped", False), ("swapped within", True)):
        for other in answers:
            if _differs(other, answer, question) and (other.lower() in own.lower()) == is_within:
                yield Case(kind, question, statement(question, other), passages, [], title)
                break


def _differs(other: str, answer: str, question: str) -> bool:
    """Return whether an answer is of the same kind as the right one, and shares no word with it."""
    return (
        _kind(other) == _kind(answer)
        and len(other.split()) <= LONGEST_ANSWER
        and not set(other.lower().split()) & set(answer.lower().split())
        and other.lower() not in question.lower()
    )


def _kind(answer: str) -> str:
    if re.search(r"\d", answer):
        return "figure"
    return "name" if answer[:1].isupper() else "other"


def statement(question: str, answer: str) -> str:
    """Return a sentence with the answer in the place of what asks; empty if nothing does."""
    asks = _ASKS.match(question)
    rest = question[asks.end() :].strip(" ?") if asks else ""
    if asks is None or not rest:
        return ""
    verb = _VERB.match(rest)
    after = rest[verb.end() :] if verb else rest
    helps = verb is not None and verb["verb"] in {"did", "does", "do"}
    named = "" if verb is None or helps else f"{verb['verb']} "
    if asks["preposition"] or asks["word"].lower() in {"when", "where"}:
        said = f"{after} {named}{asks['preposition'] or 'in'} {answer}"
    elif helps:
        said = f"{after} {answer}"
    else:
        said = f"{answer} {named}{after}"
    return f"{said[0].upper()}{said[1:]}."


if __name__ == "__main__":
    main()
