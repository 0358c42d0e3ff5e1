"""The questions that generators are measured on, and verdicts of their answers.

They are the 150 questions of `documentation.py`, 48 of them answered nowhere, each with the ten
documents that hybrid search finds, which every method gets.
"""

import re
from pathlib import Path
from typing import Any, Literal

from documentation import Asked, holds_evidence, is_right, normal, retrieved

from crag.answering.citations import without_citations
from crag.papers.experiments.examples import Example

Verdict = Literal["right", "other words", "wrong", "wordless", "declined", "made up"]
"""Right: by string match. Other words: the gold answer's words stand in it, in another order or
with others between them. Made up: an answer where there is none; declined covers both kinds."""
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


def load(docs: Path, cache: Path) -> list[Example]:
    """Return the questions; `cache` keeps what was retrieved for them.

    `Example.extra` has their `kind`, `evidence` and `corpus`.
    """
    return [
        Example(
            one.id, "qa", one.question, (one.answers,) if one.answers else (), one.documents,
            extra={"kind": one.kind, "evidence": list(one.evidence), "corpus": one.corpus},
        )
        for one in retrieved(docs, cache)
    ]  # fmt: skip


def verdict(example: Example, answer: str, *, abstained: bool) -> Verdict:
    """Judge an answer."""
    if abstained:
        return "declined"
    said = without_citations(answer)
    if not is_worded(said):
        return "wordless"
    if not example.answers:
        return "made up"
    if is_right(said, _asked(example)):
        return "right"
    return "other words" if in_other_words(example, said) else "wrong"


def is_worded(text: str) -> bool:
    """Say whether a text without its citations has a letter or a digit."""
    return any(character.isalnum() for character in text)


def in_other_words(example: Example, text: str) -> bool:
    """Say whether the words of a gold answer stand in a text, in any order.

    For lists, comparisons and two-sentences those of every part, else of any one. A yes or a no
    counts where the text begins with it. Words are compared by their first letters.
    """
    kind, (parts, *_) = example.extra["kind"], example.answers
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
    """Say whether a text holds the evidence."""
    return holds_evidence(text, _asked(example))


def _asked(example: Example) -> Asked:
    evidence: Any = example.extra.get("evidence") or ()
    return Asked(
        example.id, str(example.extra.get("corpus")), example.question,
        tuple(answer for group in example.answers for answer in group),
        tuple(map(str, evidence)), str(example.extra.get("kind")), example.documents,
    )  # fmt: skip


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(normal(text)) if word not in _SMALL}
