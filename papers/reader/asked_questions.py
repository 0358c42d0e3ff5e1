"""Questions that people would ask of documentation, written and judged by a chat model.

The headings of documentation ask in its own words. Of each unit (`asked_units`) the model is shown
the passage, its headings and the words before it, and writes a plain question, one in other words
as of somebody who has not read it, and what somebody would type into a search. Then it is shown
question and passage, and says whether the one answers the other: how much likelier Yes is than No
sorts the questions in other words.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Literal, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from pydantic import BaseModel, ConfigDict, Field

from crag.errors import ModelError, TrainingError
from crag.events import redact
from crag.papers.loading.records import Ledger
from crag.papers.reader.asked_units import WIKIPEDIA, Range, Section
from crag.plain import said
from crag.reflection.backends.candidates import tokens_of
from crag.runtime.attempt import Attempt

Kind = Literal["plain", "other", "loose", "search"]
"""Plain; in other words, judged to be answered or not surely so; words to search for."""
SURE = 1.2
"""How much likelier Yes is than No, as logarithms, for a question in other words to be "other"."""
TEMPERATURE, TOP_K = 0.6, 20
"""How the model writes; servers of llama.cpp and vLLM take both."""
LONGEST = 80
"""Tokens of a reply."""
LISTED = 20
"""Likeliest tokens that the server is asked for, among which Yes and No are looked for."""
SYSTEM = (
    "You write the questions that people type whom a given passage answers. They have not read it "
    "and do not know its terms."
)
JUDGE = "You check whether a passage answers a question. You reply with Yes or No."
_BEFORE, _BEFORE_WORDS, _PATH = 300, 22, 120
"""Characters before a unit that are looked at, words of them and characters of the headings that
are shown."""
_ALIKE = 0.75
"""Share of common words from which on a question is not in other words."""
_QUESTION_WORDS, _SEARCH_WORDS = range(3, 41), range(2, 9)
_FEWEST_CONTENT_WORDS = 2
_POINTS = re.compile(
    r"\b(this|the) (passage|section|note|document|example|text|line|context)\b"
    r"|mentioned|\bfollowing\b",
    re.IGNORECASE,
)
"""What a question says that points at the passage, which nobody who asks has seen."""
_PLAIN = re.compile(r"\A\s*(?:QUESTION:)?[ \t]*(?!SAME IN|SEARCH:)(.*)")
_OTHER = re.compile(r"OTHER WORDS:[ \t]*(.*)")
_SEARCH = re.compile(r"SEARCH:[ \t]*(.*)")
_WORD = re.compile(r"[a-z0-9_]{2,}")
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        what which how do does can i the a is are of to in for my it and with on be use used using
        you when why where who will should there from
        """,
    )
)
"""Words that say nothing of what is asked."""


class AskedQuestion(BaseModel):
    """A question and what kind it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    question: str = Field(min_length=1)
    kind: Kind
    score: float | None = None
    """How much likelier Yes is than No, as logarithms; of those in other words."""


class Rival(BaseModel):
    """A section that is found by the questions of another one, and does not repeat its unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    section: str
    text: str


class AskedRow(BaseModel):
    """A section with the questions that one unit of it answers, and its rivals."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    package: str
    source: str
    title: str
    section: str
    text: str = Field(min_length=1)
    unit: Range
    """The range of `text` that answers."""
    questions: list[AskedQuestion]
    rivals: list[Rival]


class Written(NamedTuple):
    """What the model said of one unit."""

    reply: str
    score: float | None
    """Of the question in other words; None if there is none to judge."""


class Asked(NamedTuple):
    """A unit with the questions that may be kept."""

    section: Section
    unit: Range
    questions: list[AskedQuestion]


class Asker:
    """Asks a chat model for questions, and for its judgement; `name` is for errors."""

    def __init__(self, model: BaseChatModel, name: str, seed: int = 0) -> None:
        self._name = name
        self._writer = model.bind(
            temperature=TEMPERATURE, max_tokens=LONGEST, seed=seed, extra_body={"top_k": TOP_K}
        )
        self._judge = model.bind(temperature=0, max_tokens=1, logprobs=True, top_logprobs=LISTED)

    def written(self, section: Section, unit: Range) -> Written:
        """Return the questions of a unit, and how sure its question in other words is answered.

        Raises:
            ModelError: a call failed.
            TrainingError: the server gives no log-probabilities.
        """
        reply = str(self._called(self._writer, asking(section, unit)).text)
        other = questions_in(reply).get("other")
        return Written(reply, None if other is None else self.score(other, section, unit))

    def score(self, question: str, section: Section, unit: Range) -> float | None:
        """Return log p(Yes) - log p(No); None if neither is among the likeliest words.

        If one of them is not, it counts as the least likely that is.

        Raises:
            ModelError: the call failed.
            TrainingError: the server gives no log-probabilities.
        """
        tokens = tokens_of(self._called(self._judge, judging(question, section, unit)))
        words: dict[str, float] = {}
        for text, log_probability in tokens[0].others.items() if tokens else ():
            word = text.strip().casefold()
            words[word] = max(log_probability, words.get(word, log_probability))
        if len(words) < len(_VERDICTS):
            message = (
                f"the server of {self._name!r} gives no log-probabilities (top_logprobs), by which "
                "questions are judged. Use one that does, such as llama.cpp's or vLLM's"
            )
            raise TrainingError(message)
        if not words.keys() & set(_VERDICTS):
            return None
        least = min(words.values())
        yes, no = (words.get(verdict, least) for verdict in _VERDICTS)
        return round(yes - no, 2)

    def _called(self, model: Any, messages: Sequence[AnyMessage]) -> BaseMessage:
        reply: BaseMessage | None = None
        with Attempt("model") as attempt:
            reply = model.invoke(list(messages))
        if reply is None:
            raise ModelError(self._name, "failed", redact(said(attempt.error))) from attempt.error
        return reply


def asked_of(
    sections: Sequence[Section],
    asker: Asker,
    ledger: Ledger,
    *,
    concurrency: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> list[Asked]:
    """Ask for the questions of every unit that `ledger` has none of, and return those of all.

    Raises:
        ModelError: a call failed; what was written before is in the ledger.
        TrainingError: the server gives no log-probabilities, or the ledger cannot be written.
    """
    units = {_key(one, unit): (one, unit) for one in sections for unit in one.units}
    waiting = [key for key in units if key not in ledger.made]
    pool = ThreadPoolExecutor(concurrency)
    try:
        futures = {pool.submit(asker.written, *units[key]): key for key in waiting}
        for done, future in enumerate(as_completed(futures), len(units) - len(waiting) + 1):
            ledger.add(futures[future], future.result()._asdict())
            if progress is not None:
                progress(done, len(units))
    finally:
        pool.shutdown(cancel_futures=True)
    return [
        Asked(*units[key], sorted_questions(str(made["reply"]), made["score"]))
        for key, made in ((key, ledger.made[key]) for key in units)
    ]


def _key(section: Section, unit: Range) -> str:
    place = json.dumps([section.package, section.source, section.text, unit])
    return hashlib.sha256(place.encode()).hexdigest()[:20]


def sorted_questions(reply: str, score: float | None) -> list[AskedQuestion]:
    """Return the questions of a reply that can be used; one in other words needs a score."""
    found = questions_in(reply)
    questions = [AskedQuestion(question=found["plain"], kind="plain")] if "plain" in found else []
    if "other" in found and score is not None:
        kind: Kind = "other" if score >= SURE else "loose"
        questions.append(AskedQuestion(question=found["other"], kind=kind, score=score))
    if "search" in found:
        questions.append(AskedQuestion(question=found["search"], kind="search"))
    return questions


def questions_in(reply: str) -> dict[Kind, str]:
    r"""Return the questions of a reply by kind, without those that nobody would ask.

    >>> questions_in("QUESTION: When does the pump stop?\nSEARCH: pump stop time")
    {'plain': 'When does the pump stop?', 'search': 'pump stop time'}
    """
    plain, other, search = (
        found[1].strip() if (found := pattern.search(reply)) else ""
        for pattern in (_PLAIN, _OTHER, _SEARCH)
    )
    questions: dict[Kind, str] = {}
    if _is_askable(plain):
        questions["plain"] = plain
    if _is_askable(other) and _likeness(plain, other) < _ALIKE:
        questions["other"] = other
    words = search.split()
    if len(words) in _SEARCH_WORDS and len(set(words)) == len(words) and search.isascii():
        questions["search"] = search
    return questions


def _is_askable(question: str) -> bool:
    speaks = len(content_words(question)) >= _FEWEST_CONTENT_WORDS
    is_right_length = len(question.split()) in _QUESTION_WORDS
    return speaks and is_right_length and question.isascii() and not _POINTS.search(question)


def _likeness(one: str, other: str) -> float:
    here, there = content_words(one), content_words(other)
    return len(here & there) / max(1, len(here | there))


def content_words(question: str) -> set[str]:
    """Return the words that say what is asked."""
    return set(_WORD.findall(question.lower())) - COMMON


def asking(section: Section, unit: Range) -> list[AnyMessage]:
    """Return the prompt that asks for the questions of a unit."""
    start, end = unit
    head = _headings(section)
    before = section.text[max(0, start - _BEFORE) : start].split()[-_BEFORE_WORDS:]
    if section.package == WIKIPEDIA and start:
        before = [section.title]
    shown = [
        message
        for one in _WRITTEN
        for message in (
            HumanMessage(_passage(one.headings, one.before, one.passage)),
            AIMessage(one.reply),
        )
    ]
    passage = _passage(head, " ".join(before), " ".join(section.text[start:end].split()))
    return [SystemMessage(SYSTEM), *shown, HumanMessage(passage)]


def judging(question: str, section: Section, unit: Range) -> list[AnyMessage]:
    """Return the prompt that asks whether a unit answers a question."""
    text = " ".join(section.text[slice(*unit)].split())
    shown = [
        message
        for *case, verdict in _JUDGED
        for message in (HumanMessage(_case(*case)), AIMessage(verdict))
    ]
    case = _case(question, f"{_headings(section)}\n{text}")
    return [SystemMessage(JUDGE), *shown, HumanMessage(case)]


def _headings(section: Section) -> str:
    if section.package == WIKIPEDIA:
        return section.title
    path = [section.package, section.title, *section.section.split(" > ")]
    return " > ".join(dict.fromkeys(filter(None, path)))[-_PATH:]


def _passage(headings: str, before: str, text: str) -> str:
    context = f"Before it: {before}\n" if before else ""
    return f"Section: {headings}\n{context}Passage: {text}"


def _case(question: str, passage: str) -> str:
    return f"Question: {question}\nPassage: {passage}\nDoes the passage answer the question?"


_VERDICTS = ("yes", "no")


class _Example(NamedTuple):
    """A passage and its questions, made up for the prompt."""

    headings: str
    before: str
    passage: str
    plain: str
    other: str
    search: str

    @property
    def reply(self) -> str:
        return f"QUESTION: {self.plain}\nSAME IN OTHER WORDS: {self.other}\nSEARCH: {self.search}"


_WRITTEN = (
    _Example(
        headings="Watering > Schedules",
        before="",
        passage=(
            "If the soil sensor reports more than 60 percent moisture, the run is skipped and"
            " written to the journal as `SKIPPED`."
        ),
        plain="What happens to a run when the soil is already wet?",
        other="It rained all day yesterday, will the machine still give my plants water tonight?",
        search="wet ground skip watering",
    ),
    _Example(
        headings="Staff guide > Expenses > Claims",
        before="Keep the paper until you are paid.",
        passage="Send your ticket and the form within 30 days; later claims are not paid.",
        plain="How long do I have to hand in a claim for a train ticket?",
        other="I found an old receipt in my coat, is it too late to get my money back?",
        search="deadline refund receipt",
    ),
    _Example(
        headings="Pump > Safety",
        before="",
        passage=(
            "The pump stops by itself after 20 minutes, so that a broken hose cannot empty "
            "the tank."
        ),
        plain="Why does the pump stop after 20 minutes?",
        other="what keeps a burst pipe from using up everything in my barrel",
        search="leak protection time limit",
    ),
    _Example(
        headings="archiver > Options",
        before="",
        passage="`--keep-dates` Restore the time of the last change of each file. Off by default.",
        plain="Which option of archiver restores when files were last changed?",
        other=(
            "After unpacking, everything looks as if I wrote it today. How do I get the "
            "original days?"
        ),
        search="preserve timestamps unpack",
    ),
    _Example(
        headings="Store > Opening",
        before="Opening fails if another program has locked the store.",
        passage="open(path, retries=3) # tries again after one second",
        plain="How do I make `open` try again when the store is locked?",
        other=(
            "my script dies when two of them run at once, can it wait a little and have another go"
        ),
        search="retry locked store",
    ),
    _Example(
        headings="Maria Linde",
        before="",
        passage=(
            "Linde grew up in Uppsala and moved to Paris in 1921, where she painted theatre sets."
        ),
        plain="In which city did Maria Linde paint theatre sets?",
        other="Where did Linde make pictures for the stage?",
        search="Linde stage painter city",
    ),
)
_JUDGED = (
    (
        "How long is a password valid?",
        "Security > Passwords\nPasswords have at least twelve characters.",
        "No",
    ),
    (
        "my login stopped working after a while, how often do I have to pick a new secret",
        "Security > Passwords\nChange it every 90 days; then the old one is refused.",
        "Yes",
    ),
    (
        "Can I use it on Windows?",
        "Installing\nOn Linux, run `make install`. On macOS, use the package.",
        "No",
    ),
    (
        "Which flag shows more output?",
        "Options\n`-v` Print each step. Give it twice for even more.",
        "Yes",
    ),
    (
        "Can you recommend a good laptop?",
        "Installing > Needs\nFour gigabytes of memory are enough.",
        "No",
    ),
)
"""Question, passage and verdict, made up too."""
