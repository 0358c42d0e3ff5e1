"""Split a question of several parts: by a rule, or as a model's reply says."""

import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from crag.correction.queries import cut
from crag.plain import filled
from crag.text.marks import without_marks
from crag.text.words import question_words, words

_WHAT = "who whom whose what which when where why how".split()  # noqa: SIM905 - reads better
_DOES = """
do does did is are was were can could should will would has have may must am
""".split()  # noqa: SIM905 - reads better
_QUESTION = re.compile(r"[^?]*\?+[\"”')\]]*", re.DOTALL)
_SUBJECT = "i|we|you|there|the|an?|my|our"
_AND = re.compile(
    rf",?\s+and\s+(?:also\s+)?"
    rf"(?=(?:{'|'.join(_WHAT)})\b|(?:{'|'.join(_DOES)})\s+(?:{_SUBJECT})\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"(?:(?:\w+\s+)?(?:{'|'.join(_WHAT)})|{'|'.join(_DOES)})\b", re.IGNORECASE)
"""With a word before it, as in "In which year"."""
_LACKS_VERB = re.compile(
    rf"\b(?:{'|'.join(_DOES)}|can|won)(?:n?['’]t|not| not)?\W*$", re.IGNORECASE
)
"""As in "and what can't?"."""
_SENTENCE = re.compile(r"[.!;:]\s")
_REFERS = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|these|those|former|latter)\b",
    re.IGNORECASE,
)
_FIRST_WORDS = 5
"""The words of a later part among which a pronoun refers to an earlier part."""
_NUMBER = re.compile(r"#(\d{1,2})\b")
_LONGEST_ANSWER = 200
_CAPITAL = r"[^\W\d_a-z](?:\.(?=\s)|[\w'’-]*)"
_NAME = re.compile(rf"\b{_CAPITAL}(?:\s+(?:(?:de|la|of|the|van|von)\s+)*{_CAPITAL})*")
"""One or more words with capital letters."""
"""Characters of an answer that a later part is asked with."""


class _QuestionParts(BaseModel):
    """The JSON that the prompt asks for."""

    model_config = ConfigDict(strict=True)

    questions: list[str]


def parts_by_rule(question: str, most: int) -> list[str]:
    """Split several questions in a row, or two joined by "and" before "what", "can I" and the like.

    The question stays whole where a later part has a pronoun among its first words, or ends without
    its verb, because it is about what an earlier part names; further on, a pronoun is about the
    part's own words. English only; what comes before a question in its sentence stays with it.
    """
    pieces = [piece.strip() for piece in _QUESTION.findall(question)]
    rest = question[sum(len(piece) for piece in _QUESTION.findall(question)) :].strip()
    if rest:  # What is said after the last question may change the meaning of all.
        pieces = [question.strip()] if not pieces or len(pieces) > 1 else [f"{pieces[0]} {rest}"]
    parts = [part for piece in pieces for part in _joined_by_and(piece)]
    if len(parts) < 2 or any(map(_refers_back, parts[1:])):  # noqa: PLR2004
        return [question]
    return bounded(parts, most)


def read_parts(reply: str, most: int, longest: int) -> list[str] | None:
    """Return the parts in a model's reply, or None if it is not the JSON that was asked for.

    A part is at most `longest` characters long. ``#n`` may stand for the answer to the n-th part
    before it; a part that refers to itself or to a later one makes the reply unusable.
    """
    parsed = filled(_QuestionParts, reply)
    if parsed is None:
        return None
    parts = [" ".join(part.split()) for part in parsed.questions]
    unusable = not parts or not all(0 < len(part) <= longest for part in parts)
    for number, part in enumerate(parts, start=1):
        unusable |= any(not 1 <= int(reference) < number for reference in _NUMBER.findall(part))
    return None if unusable else bounded(parts, most)


def bounded(parts: Sequence[str], most: int) -> list[str]:
    """Return at most `most` parts; those beyond are asked together, so that none is lost."""
    return [*parts[: most - 1], " ".join(parts[most - 1 :])] if len(parts) > most else [*parts]


def without_answers(question: str, asked: str) -> str:
    """Return a part as it was `asked`, or as it was planned where that has the answer to another.

    What is said of that answer is nothing that the question itself names.
    """
    return _NUMBER.sub("", question) if _NUMBER.search(question) else asked


def with_answers(part: str, questions: Sequence[str], answers: Sequence[str | None]) -> str:
    """Put answers to earlier parts in the place of ``#1``, ``#2`` and so on.

    `questions` are the earlier parts, `answers` theirs; a part without an answer (None) is
    described by its question. Of a sentence with one name that its question lacks, that is put
    there: "Where was The director of Alien is Ridley Scott born?" is asked of nothing.
    """

    def answer(mark: re.Match[str]) -> str:
        place = int(mark[1]) - 1
        if not 0 <= place < len(questions):
            return mark[0]
        said = answers[place]
        if said is None:
            return f"the answer to “{questions[place]}”"
        bare = " ".join(without_marks(said).split()).strip("“”").rstrip(".")
        names = _new_names(bare, questions[place])
        return cut(names[0] if len(names) == 1 else bare, _LONGEST_ANSWER)

    return _NUMBER.sub(answer, part)


def _new_names(said: str, question: str) -> list[str]:
    """Return the names in an answer that its question lacks, if it says words of that again."""
    new = {*question_words(said)} - {*words(question)}
    if new.issuperset(question_words(said)):
        return []
    return [name for name in dict.fromkeys(_NAME.findall(said)) if not new.isdisjoint(words(name))]


def _refers_back(part: str) -> bool:
    begins = " ".join(part.split()[:_FIRST_WORDS])
    return bool(_REFERS.search(begins) or _LACKS_VERB.search(part))


def _joined_by_and(piece: str) -> list[str]:
    """Split one question before such an "and", if both sides ask something."""
    parts = _AND.split(piece)
    if len(parts) == 1 or _SENTENCE.search(parts[0]) or not _ASKS.match(parts[0]):
        return [piece]
    first, *others = (part.strip(" ,?") for part in parts)
    if min(len(part.split()) for part in (first, *others)) < 3:  # noqa: PLR2004 - "who and where"
        return [piece]
    return [f"{first}?", *(f"{part[:1].upper()}{part[1:]}?" for part in others)]
