"""The papers' accuracy, and a normalised one; the two belong in different columns.

The official rule is that of Self-RAG's script, which CRAG's follows (Self-RAG, Sec. 4.1; CRAG,
Sec. 5.2): a gold answer is a substring of the prediction, with its case. `True` does not match
`true`, and any capital A of a prediction matches option A.
"""

import re
from collections.abc import Sequence

from crag.asking.evaluate import normalised_match
from crag.papers.bench.examples import Example
from crag.papers.metrics.metric import ALL, LONG, Metric, Row, has_answer
from crag.papers.tasks import answer_of

_VERDICT = re.compile(r"\b(true|false|supports|supported|refutes|refuted)\b")
_TRUE = {"true", "supports", "supported"}
_LETTERS, _DIGITS = "ABCDE", "12345"
_ALONE = re.compile(r"\W*([A-E1-5])(?=\W*$|\s*[:.),;])")
_NAMED = re.compile(r"\b(?:answer|option|choice)\b(?: is)?\s*:?\s*\(?([A-E1-5])\b", re.IGNORECASE)
_TASKS = ALL - LONG


def official_match(prediction: str, answers: Sequence[str]) -> bool:
    """Return whether any answer is a substring of the prediction, case-sensitive."""
    return any(answer in prediction for answer in answers)


def official_verdict(prediction: str) -> str:
    """Read a prediction that contains SUPPORTS as `true`, REFUTES as `false`, else leave it.

    The script does so for every task.
    """
    if "SUPPORTS" in prediction:
        return "true"
    return "false" if "REFUTES" in prediction else prediction


def verdict_of(prediction: str) -> str:
    """Return `true` or `false`, whichever comes first in any letter case, or nothing."""
    found = _VERDICT.search(prediction.lower())
    return ("true" if found[1] in _TRUE else "false") if found else ""


def chosen_option(prediction: str, choices: Sequence[tuple[str, str]]) -> int | None:
    """Return the index of the option that a prediction chooses, from 0; None if it names none.

    It is a separate label at the start (``B``, ``(B)``, ``B: rain``), one after the words answer,
    option or choice, or the text of exactly one option. Letters and numbers are equivalent.
    """
    found = _ALONE.match(prediction) or _NAMED.search(prediction)
    if found:
        label = found[1].upper()
        place = (_LETTERS if label in _LETTERS else _DIGITS).index(label)
        return place if place < len(choices) else None
    quoted = [
        place for place, (_, text) in enumerate(choices) if normalised_match(prediction, [text])
    ]
    return quoted[0] if len(quoted) == 1 else None


def _official(example: Example, row: Row) -> float | None:
    if not example.answers:
        return None
    prediction = official_verdict(str(row["answer"]))
    right = any(official_match(prediction, group) for group in example.answers)
    return float(right and has_answer(row))


def _normalised(example: Example, row: Row) -> float | None:
    if not example.answers:
        return None
    prediction, answers = str(row["answer"]), [one for group in example.answers for one in group]
    if not has_answer(row):
        return 0.0
    match answer_of(example.task):
        case "verdict":
            return float(verdict_of(prediction) in answers)
        case "option":
            place = chosen_option(prediction, example.choices)
            return float(place is not None and example.choices[place][0] in answers)
        case _:
            return float(normalised_match(prediction, answers))


def _answered(example: Example, row: Row) -> float | None:
    return _official(example, row) if row["outcome"] == "answered" else None


METRICS = (
    # Official accuracy. ARC's numeric answer keys are compared as published, so letters never match
    # them. A likely answer counts, and an
    # abstention is wrong.
    Metric(name="match", compute=_official, tasks=_TASKS),
    # Ours: case and punctuation ignored, the first verdict, the chosen option, numeric keys mapped.
    Metric(name="match_normalised", compute=_normalised, tasks=_TASKS),
    # Official accuracy of the questions answered surely: how reliable an answer is.
    Metric(name="match_answered", compute=_answered, tasks=_TASKS),
)
