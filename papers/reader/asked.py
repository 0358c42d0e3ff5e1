"""Questions that people would ask of documentation, written and judged by a chat model.

The headings of documentation ask in its own words. Of some passages of each section the model is
shown the passage, its headings and the words before it, and writes a plain question, one in other
words as of somebody who has not read it, and what somebody would type into a search. Then it is
shown question and passage, and says whether the one answers the other: how much likelier Yes is
than No sorts the questions in other words. Rivals of a section are what a search by words finds in
the same package for the same questions.
"""

import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from pydantic import BaseModel, ConfigDict, Field

from crag.errors import ModelError, TrainingError
from crag.events import redact
from crag.papers.loading.records import Ledger
from crag.papers.reader.documentation import Search, Section, sections_of, words_in
from crag.plain import said
from crag.prompts import PACKAGED
from crag.reflection.backends.candidates import tokens_of
from crag.runtime.attempt import Attempt

Kind = Literal["plain", "other", "loose", "search"]
"""Plain; in other words, judged to be answered or not surely so; words to search for."""
Range = tuple[int, int]
EACH = 14
"""Passages of one package at most."""
SURE = 1.2
"""How much likelier Yes is than No, as logarithms, for a question in other words to be "other"."""
TEMPERATURE, TOP_K = 0.6, 20
"""How the model writes; servers of llama.cpp and vLLM take both."""
LONGEST = 80
"""Tokens of a reply."""
LISTED = 20
"""Likeliest tokens that the server is asked for, among which Yes and No are looked for."""
RIVALS: Mapping[Kind, int] = {"plain": 5, "other": 3, "search": 2}
"""Rivals taken of what a question of each kind finds."""
MOST_RIVALS = 8
FIRST = 10
"""A plain question and words to search for are kept if their section is among so many."""
REPEATED = 0.4
"""Share of a passage's runs of words from which on a text repeats it, and is no rival."""
_VERDICTS = ("yes", "no")
_OF_SECTION = 2
"""Passages of one section at most."""
_WORDS = range(7, 71)
"""How many words a passage has."""
_LETTERS = 0.55
"""Share of a passage that letters make at least."""
_SECTION_WORDS = range(30, 401)
_LEGAL = re.compile(r"copyright|licen[sc]e", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*")
_BEFORE, _BEFORE_WORDS, _PATH = 300, 22, 120
"""Characters before a passage that are looked at, words of them and characters of the headings
that are shown."""
_ALIKE = 0.75
"""Share of common words from which on a question is not in other words."""
_QUESTION_WORDS, _SEARCH_WORDS, _FEWEST_CONTENT_WORDS, _RUN = range(3, 41), range(2, 9), 2, 4
_POINTS = re.compile(
    r"\b(this|the) (passage|section|note|document|example|text|line|context)\b"
    r"|mentioned|\bfollowing\b",
    re.IGNORECASE,
)
"""What a question says that points at the passage, which nobody who asks has seen."""
_PLAIN = re.compile(r"\A\s*(?:QUESTION:)?[ \t]*(?!SAME IN|SEARCH:)(.*)")
_OTHER = re.compile(r"OTHER WORDS:[ \t]*(.*)")
_SEARCH = re.compile(r"SEARCH:[ \t]*(.*)")


class AskedQuestion(BaseModel):
    """A question and what kind it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    question: str = Field(min_length=1)
    kind: Kind
    score: float | None = None
    """How much likelier Yes is than No, as logarithms; of those in other words."""


class Rival(BaseModel):
    """A section that is found by the questions of another one, and does not repeat its passage."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    section: str
    text: str


class AskedRow(BaseModel):
    """A section with the questions that one passage of it answers, and its rivals."""

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


class Unit(NamedTuple):
    """A passage that a question is asked of: a range of the text of a section."""

    section: Section
    place: Range

    @property
    def text(self) -> str:
        """The passage alone."""
        return self.section.text[slice(*self.place)]

    @property
    def key(self) -> str:
        """A digest that tells it from all others."""
        section = self.section
        place = json.dumps([section.package, section.source, section.text, self.place])
        return hashlib.sha256(place.encode()).hexdigest()[:20]


def units_of_package(folder: Path, most: int = EACH) -> tuple[list[Section], list[Unit]]:
    """Return the sections of one package, each text once, and at most `most` units, or one more.

    They are drawn by the name of the package, so that other packages do not change them.
    """
    draw = random.Random(folder.name)  # noqa: S311 - data, no secret
    sections = list({one.text: one for one in sections_of(folder, draw)}.values())
    draw.shuffle(sections)
    units: list[Unit] = []
    for section in sections:
        if len(units) >= most:
            break
        if len(section.text.split()) in _SECTION_WORDS:
            found = list(units_in(section.text))
            drawn = draw.sample(found, min(_OF_SECTION, len(found)))
            units += [Unit(section, place) for place in drawn]
    return sections, units


def units_in(text: str) -> Iterator[Range]:
    """Yield the paragraphs of a section that answer something by themselves."""
    for paragraph in _PARAGRAPH.finditer(text):
        letters = sum(character.isalpha() for character in paragraph[0])
        is_prose = letters > _LETTERS * len(paragraph[0]) and paragraph[0].isascii()
        if is_prose and len(paragraph[0].split()) in _WORDS and not _LEGAL.search(paragraph[0]):
            yield paragraph.span()


class Asker:
    """Asks a chat model for questions, and for its judgement; `name` is for errors."""

    def __init__(self, model: BaseChatModel, name: str, seed: int = 0) -> None:
        self._name = name
        self._writer = model.bind(
            temperature=TEMPERATURE, max_tokens=LONGEST, seed=seed, extra_body={"top_k": TOP_K}
        )
        self._judge = model.bind(temperature=0, max_tokens=1, logprobs=True, top_logprobs=LISTED)

    def written(self, unit: Unit) -> dict[str, Any]:
        """Return the `reply` for a unit, and the `score` of its question in other words.

        Raises:
            ModelError: a call failed.
            TrainingError: the server gives no log-probabilities.
        """
        reply = str(self._called(self._writer, asking(unit)).text)
        other = questions_in(reply).get("other")
        return {"reply": reply, "score": None if other is None else self.score(other, unit)}

    def score(self, question: str, unit: Unit) -> float | None:
        """Return log p(Yes) - log p(No); None if neither is among the likeliest words.

        If one of them is not, it counts as the least likely that is.

        Raises:
            ModelError: the call failed.
            TrainingError: the server gives no log-probabilities.
        """
        tokens = tokens_of(self._called(self._judge, judging(question, unit)))
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
    units: Sequence[Unit],
    asker: Asker,
    ledger: Ledger,
    *,
    concurrency: int = 8,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> dict[Unit, list[AskedQuestion]]:
    """Ask for the questions of every unit that `ledger` has none of, and return those of all.

    Raises:
        ModelError: a call failed; what was written before is in the ledger.
        TrainingError: the server gives no log-probabilities, or the ledger cannot be written.
    """
    waiting = [unit for unit in units if unit.key not in ledger.made]
    pool = ThreadPoolExecutor(concurrency)
    try:
        futures = {pool.submit(asker.written, unit): unit.key for unit in waiting}
        for done, future in enumerate(as_completed(futures), len(units) - len(waiting) + 1):
            ledger.add(futures[future], future.result())
            progress(done, len(units))
    finally:
        pool.shutdown(cancel_futures=True)
    made = {unit: ledger.made[unit.key] for unit in units}
    return {unit: sorted_questions(one["reply"], one["score"]) for unit, one in made.items()}


def sorted_questions(reply: str, score: float | None) -> list[AskedQuestion]:
    """Return the questions of a reply that can be used; one in other words needs a score."""
    questions = []
    for kind, question in questions_in(reply).items():
        if kind != "other":
            questions.append(AskedQuestion(question=question, kind=kind))
        elif score is not None:
            sure: Kind = "other" if score >= SURE else "loose"
            questions.append(AskedQuestion(question=question, kind=sure, score=score))
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
    here, there = set(words_in(plain)), set(words_in(other))
    questions: dict[Kind, str] = {}
    if _is_askable(plain):
        questions["plain"] = plain
    if _is_askable(other) and len(here & there) < _ALIKE * max(1, len(here | there)):
        questions["other"] = other
    words = search.split()
    if len(words) in _SEARCH_WORDS and len(set(words)) == len(words) and search.isascii():
        questions["search"] = search
    return questions


def _is_askable(question: str) -> bool:
    speaks = len(words_in(question)) >= _FEWEST_CONTENT_WORDS
    is_right_length = len(question.split()) in _QUESTION_WORDS
    return speaks and is_right_length and question.isascii() and not _POINTS.search(question)


def asking(unit: Unit) -> list[AnyMessage]:
    """Return the prompt that asks for the questions of a unit."""
    section, (start, _) = unit.section, unit.place
    before = " ".join(section.text[max(0, start - _BEFORE) : start].split()[-_BEFORE_WORDS:])
    context = f"Before it: {before}\n" if before else ""
    passage = " ".join(unit.text.split())
    shown = f"Section: {_headings(section)}\n{context}Passage: {passage}"
    return PACKAGED.render("ask_questions", knowledge=shown)


def judging(question: str, unit: Unit) -> list[AnyMessage]:
    """Return the prompt that asks whether a unit answers a question."""
    passage = f"{_headings(unit.section)}\n{' '.join(unit.text.split())}"
    return PACKAGED.render("judge_question", question=question, knowledge=passage)


def _headings(section: Section) -> str:
    return " > ".join(dict.fromkeys([section.package, *section.path]))[-_PATH:]


def with_rivals(
    asked: Mapping[Unit, Sequence[AskedQuestion]], sections: Sequence[Section]
) -> list[AskedRow]:
    """Return the units that keep a question and have a rival; those of a package come together.

    A plain question, or words to search for, that do not find their own section ask too little.
    """
    of_package: Mapping[str, list[Section]] = defaultdict(list)
    for section in sections:
        of_package[section.package].append(section)
    rows: list[AskedRow] = []
    for package, units in groupby(asked, key=lambda unit: unit.section.package):
        within = of_package[package]
        search = Search([f"{' '.join(one.path)} {one.text}" for one in within])
        for unit in units:
            found = {
                one: [within[place] for place in search.found(one.question)] for one in asked[unit]
            }
            kept = [
                one
                for one, places in found.items()
                if one.kind not in {"plain", "search"} or unit.section in places[:FIRST]
            ]
            rivals = _rivals(unit, found)
            if kept and rivals:
                about = unit.section._asdict()
                rows.append(AskedRow(**about, unit=unit.place, questions=kept, rivals=rivals))
    return rows


def _rivals(unit: Unit, found: Mapping[AskedQuestion, Sequence[Section]]) -> list[Rival]:
    runs = _runs(unit.text)
    chosen: list[Section] = []
    for question, sections in found.items():
        others = [one for one in sections if one != unit.section and one not in chosen]
        chosen += others[: RIVALS.get(question.kind, 0)]
    return [
        Rival(title=one.title, section=one.section, text=one.text)
        for one in chosen
        if not runs or len(runs & _runs(one.text)) < REPEATED * len(runs)
    ][:MOST_RIVALS]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}
