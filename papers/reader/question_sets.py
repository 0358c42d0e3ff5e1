"""Rows of a reader from question-answering sets, as the shipped reader learned from them.

The folder of data has reading/*.jsonl, qa/*_train.jsonl, qa/*_sentences.jsonl and
evaluator/train.jsonl. Each row holds one question and one passage, and as much as the source says
of: whether it is about the right thing (`entity`), whether it holds the answer (`answer`), which
sentences do (`evidence`) and where the answer stands (`span`); null where the source is silent.

What makes a row hard is made here: paragraphs of the same article, the right paragraph without
its answering sentence, questions changed so that they only look answerable, titles left out,
questions cut down to keywords, sentences laid out as the lists and sections of documentation.
Articles of reading/squad2_unanswerable.jsonl in `HELD_OUT` are left for development.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crag.papers.loading.records import read_objects
from crag.papers.reader.rows import ReadingRow
from crag.text.sentences import split_sentences

HELD_OUT = (
    "Amazon rainforest",
    "Harvard University",
    "Private school",
    "Scottish Parliament",
    "Force",
)
"""Articles of SQuAD 2.0 that are not trained on."""
MOST_WORDS = 150
"""Words in a passage; longer ones are cut to the sentences around the evidence."""
ROWS = {
    "squad": 9000, "squad_removed": 2600, "squad_neighbour": 6000, "squad_altered": 3200,
    "squad_elsewhere": 700, "squad2": 3400, "policyqa": 2000, "policyqa_neighbour": 1400,
    "medquad": 1300, "medquad_other": 1800, "timeqa": 1000, "timeqa_other": 1400, "fitz": 1000,
    "popqa": 3200, "nq": 2000, "nq_other": 3000, "selqa": 1800, "selqa_removed": 800, "qed": 900,
    "entities": 3400,
}  # fmt: skip
"""Rows taken of each kind, drawn by the seed."""
NO_TITLE, KEYWORDS, LAID_OUT = 0.3, 0.1, 0.2
"""Shares of rows without title, with keywords for a question, and laid out as documentation."""

_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a an the is are was were be been do does did has have had of in on at to for from by with
        what which who whom whose when where why how many much that this these those there it its
        and or as can could would should will i you we they my your me us
        """,
    )
)
_NOTHING = (False, False)
"""Neither evidence nor span is known."""
_NUMBER = re.compile(r"\b\d+\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: (?:of |the )?[A-Z][\w'-]+)*")


class Text(NamedTuple):
    """Sentences of one text, those that hold the answer, and where in one of them it stands."""

    title: str
    sentences: tuple[str, ...]
    evidence: frozenset[int] = frozenset()
    span: tuple[int, int, int] | None = None
    """Sentence, start and end within it."""

    @property
    def answers(self) -> int:
        """1 if a sentence holds the answer, else 0."""
        return int(bool(self.evidence))

    def without_evidence(self) -> "Text":
        """Return the text with the answering sentences taken out."""
        kept = (s for i, s in enumerate(self.sentences) if i not in self.evidence)
        return Text(self.title, tuple(kept))


class Row(NamedTuple):
    """One training row before it is laid out."""

    kind: str
    question: str
    text: Text
    entity: int | None
    answer: int | None
    evidence_known: bool = True
    """Whether all sentences with the answer are marked."""
    span_known: bool = True


Read = Sequence[dict[str, Any]]
"""The lines of a file."""


def reading_rows(data: Path, seed: int) -> list[ReadingRow]:
    """Draw the rows of each kind, as many as `ROWS` says, lay them out and shuffle them.

    Raises:
        DataError: a file of the folder is missing or is not JSONL.
    """
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    kinds: dict[str, list[Row]] = defaultdict(list)
    for file, rows_of in SOURCES.items():
        for row in rows_of(read_objects(data / file), draw):
            kinds[row.kind].append(row)
    written = [
        laid_out(row, draw)
        for kind, most in ROWS.items()
        for row in draw.sample(kinds[kind], min(len(kinds[kind]), most))
    ]
    draw.shuffle(written)
    return written


def mixed(
    rows: Sequence[ReadingRow], others: Sequence[ReadingRow], most: int | None, seed: int
) -> list[ReadingRow]:
    """Return `others` with at most `most` of the rows, drawn and shuffled by the seed."""
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    everything = [*others, *draw.sample(rows, len(rows))[:most]]
    draw.shuffle(everything)
    return everything


def _squad(read: Read, draw: random.Random) -> Iterator[Row]:
    """Make right rows, neighbours, cut ones, altered ones and far ones."""
    articles = _by_title(read)
    for one in read:
        neighbours = articles[one["title"]]
        for row in _questions("squad", one):
            yield row._replace(entity=1)
            rest = row.text.without_evidence()
            if len(rest.sentences) > 1:
                yield Row("squad_removed", row.question, rest, 1, 0)
            drawn = draw.sample(neighbours, min(8, len(neighbours)))
            beside = [other for other in drawn if other is not one]
            asked = _words(row.question)
            other = max(beside, key=lambda p: len(asked & _words(p["text"])), default=None)
            if other is not None and not _holds(other["text"], row.text):
                yield Row("squad_neighbour", row.question, _text(other), None, 0)
            changed = altered(row.question, one["text"], draw.choice(neighbours)["text"], draw)
            if changed is not None:
                plain = row.text._replace(evidence=frozenset(), span=None)
                yield Row("squad_altered", changed, plain, None, 0)
            far = draw.choice(read)
            if far["title"] != one["title"]:
                yield Row("squad_elsewhere", row.question, _text(far), 0, 0)


def _squad2(read: Read, _: random.Random) -> Iterator[Row]:
    for one in read:
        if one["title"] not in HELD_OUT:
            yield from (row._replace(entity=1) for row in _questions("squad2", one))


def _policies(read: Read, draw: random.Random) -> Iterator[Row]:
    """Make rows of privacy policies.

    They answer the same thing in many places, so only texts without common words are negatives.
    """
    for one in read:
        for row in _questions("policyqa", one):
            yield row
            far = draw.choice(read)
            is_asked = row.question in {other["question"] for other in far["questions"]}
            if not is_asked and len(_words(row.question) & _words(far["text"])) <= 1:
                yield Row("policyqa_neighbour", row.question, _text(far), None, 0)


def _medicine(read: Read, draw: random.Random) -> Iterator[Row]:
    """Make rows of medical pages: each section answers its question as a whole."""
    for page in read:
        for section in page["sections"]:
            asked = section["question"]
            right = _text(page | section)
            if len(section["text"].split()) <= MOST_WORDS:
                whole = right._replace(evidence=frozenset(range(len(right.sentences))))
                yield Row("medquad", asked, whole, 1, 1, span_known=False)
            others = [other for other in page["sections"] if other["question"] != asked]
            if others:
                yield Row("medquad_other", asked, _text(page | draw.choice(others)), 1, 0)
            far = draw.choice(read)
            if far is not page:
                wrong = _text(far | draw.choice(far["sections"]))
                yield Row("medquad_other", asked, wrong, 0, 0)


def _times(read: Read, _: random.Random) -> Iterator[Row]:
    """Make rows of TimeQA: the right page, and mostly the wrong time."""
    for one in read:
        for page in one["passages"]:
            text = _text(page, page.get("answers") or ())
            kind = "timeqa" if text.answers else "timeqa_other"
            yield Row(kind, one["question"], text, 1, text.answers)


def _fitz(read: Read, _: random.Random) -> Iterator[Row]:
    """Make rows of the texts of a question, joined: together they answer it or do not."""
    for one in read:
        if one["label"] in {"answerable", "absent", "detail_missing"}:
            answer = one["label"] == "answerable"
            text = {"title": "", "text": " ".join(part["text"] for part in one["passages"])}
            yield Row(
                "fitz", one["question"], _text(text), None, int(answer), not answer, not answer
            )


def _popqa(read: Read, _: random.Random) -> Iterator[Row]:
    """Make rows of PopQA; whether the page of another answers is not said by a string in it."""
    for one in read:
        for page in one["documents"]:
            right, held = bool(page["gold"]), bool(page["answer"])
            text = _with_answers(page, one["answers"]) if held and right else _text(page)
            known = right or not held
            answer = int(held) if known else None
            yield Row("popqa", one["question"], text, int(right), answer, known, known)


def _natural_questions(read: Read, _: random.Random) -> Iterator[Row]:
    """Make rows of NQ: passages with a gold answer, and mined ones without."""
    for one in read:
        for page in one["documents"]:
            if page["answer"]:
                text = _with_answers(page, one["answers"])
                known = bool(text.answers)
                yield Row("nq", one["question"], text, 1, 1, known, known)
            else:
                yield Row("nq_other", one["question"], _text(page), None, 0)


def _sentences(kind: str) -> "Callable[[Read, random.Random], Iterator[Row]]":
    """Make rows of sections whose sentences are judged one by one."""

    def rows(read: Read, _: random.Random) -> Iterator[Row]:
        for one in read:
            documents = one["documents"]
            sentences = tuple(part["text"].strip() + " " for part in documents)
            evidence = [i for i, part in enumerate(documents) if part["answer"]]
            spans = [
                (i, place, place + len(answer))
                for i in evidence
                for answer in sorted(one["answers"], key=len, reverse=True)
                if (place := sentences[i].find(answer)) >= 0
            ]
            span = spans[0] if spans else None
            text = Text(documents[0]["title"], sentences, frozenset(evidence), span)
            if evidence:
                yield Row(kind, one["question"], text, 1, 1, span_known=bool(spans))
                if len(evidence) < len(sentences):
                    rest = text.without_evidence()
                    yield Row(f"{kind}_removed", one["question"], rest, 1, 0)

    return rows


def _entities(read: Read, _: random.Random) -> Iterator[Row]:
    for one in read:
        if one["source"] in {"popqa", "wiki-template"}:
            entity = int(one["label"])
            yield Row("entities", one["question"], _text(one), entity, None, *_NOTHING)


SOURCES: Mapping[str, Callable[[Read, random.Random], Iterator[Row]]] = {
    "reading/squad_train.jsonl": _squad,
    "reading/squad2_unanswerable.jsonl": _squad2,
    "reading/policyqa.jsonl": _policies,
    "reading/medquad.jsonl": _medicine,
    "reading/timeqa.jsonl": _times,
    "reading/fitz.jsonl": _fitz,
    "qa/popqa_train.jsonl": _popqa,
    "qa/nq_train.jsonl": _natural_questions,
    "qa/selqa_sentences.jsonl": _sentences("selqa"),
    "qa/qed_sentences.jsonl": _sentences("qed"),
    "evaluator/train.jsonl": _entities,
}
"""Every file, and what makes its rows."""


def laid_out(row: Row, draw: random.Random) -> ReadingRow:
    """Return the row as it is written: a passage as one text, with offsets into it."""
    found = shortened(row.text, draw)
    title = "" if draw.random() < NO_TITLE and row.kind != "entities" else found.title
    if row.kind.startswith("policyqa"):  # The name of a site says nothing.
        title = draw.choice(["Privacy policy", ""])
    question = keywords(row.question) if draw.random() < KEYWORDS else row.question
    text, between, end = _layout(found.title, draw)
    starts: list[int] = []
    for sentence in found.sentences:
        if starts and between:
            text = text.rstrip(" ") + between
        starts.append(len(text))
        text += sentence
    text = text.rstrip() + end
    evidence = [(starts[i], starts[i] + len(found.sentences[i].rstrip())) for i in found.evidence]
    span = None
    if found.span is not None and row.answer:
        place, start, stop = found.span
        span = (starts[place] + start, starts[place] + stop)
    return ReadingRow(
        question=question, title=title, text=text, entity=row.entity, answer=row.answer,
        evidence=sorted(evidence) if row.evidence_known else None, span=span,
        span_known=row.span_known and (span is not None or row.answer == 0), source=row.kind,
    )  # fmt: skip


def _layout(title: str, draw: random.Random) -> tuple[str, str, str]:
    """Draw what stands before, between and after the sentences."""
    if draw.random() >= LAID_OUT:
        return "", "", ""
    heading = f"## {title}\n\n" if title and draw.random() < 1 / 2 else ""
    return draw.choice(
        [
            (heading, "\n", ""),
            (heading, "\n\n", ""),
            (heading + "- ", "\n- ", ""),
            (heading + "* ", "\n* ", "\n"),
            (heading or "# Notes\n\n", "", ""),
        ]
    )


def shortened(found: Text, draw: random.Random) -> Text:
    """Cut to the sentences around the evidence that have at most `MOST_WORDS` words."""
    sizes = [len(sentence.split()) for sentence in found.sentences]
    if sum(sizes) <= MOST_WORDS:
        return found
    centre = draw.choice(sorted(found.evidence) or range(len(sizes)))
    if found.span is not None:
        centre = found.span[0]
    low = high = centre
    while True:
        sides = [side for side in (low - 1, high + 1) if 0 <= side < len(sizes)]
        sides = [side for side in sides if sum(sizes[low : high + 1]) + sizes[side] <= MOST_WORDS]
        if not sides:
            break
        side = draw.choice(sides)
        low, high = min(low, side), max(high, side)
    return Text(
        found.title,
        found.sentences[low : high + 1],
        frozenset(i - low for i in found.evidence if low <= i <= high),
        None if found.span is None else (found.span[0] - low, *found.span[1:]),
    )


def altered(question: str, text: str, other: str, draw: random.Random) -> str | None:
    """Put a number or a name into a question that `text` does not hold, or return None."""
    number = _NUMBER.search(question)
    if number is not None:
        value = int(number[0]) + draw.choice([-31, -12, -7, -3, 3, 5, 9, 14, 40])
        changed = str(max(1, value))
        if changed not in text:
            return question[: number.start()] + changed + question[number.end() :]
    names = [match for match in _NAME.finditer(question) if match[0] in text]
    others = [match[0] for match in _NAME.finditer(other) if match[0] not in text]
    if not names or not others:
        return None
    name = draw.choice(names)
    return question[: name.start()] + draw.choice(others) + question[name.end() :]


def keywords(question: str) -> str:
    """Return the question as someone types it into a search box."""
    left = [word for word in re.findall(r"[\w'.-]+", question.lower()) if word not in _STOP]
    return " ".join(left) if len(left) > 1 else question


def _words(text: str) -> set[str]:
    """Return the words of a text that carry meaning."""
    return set(re.findall(r"\w+", text.lower())) - _STOP


def _holds(text: str, right: Text) -> bool:
    """Say whether another paragraph holds the answer's words too."""
    if right.span is None:
        return False
    sentence, start, end = right.span
    return right.sentences[sentence][start:end].lower() in text.lower()


def _questions(kind: str, paragraph: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for each question of a paragraph."""
    for asked in paragraph["questions"]:
        text = _text(paragraph, asked["answers"])
        if bool(text.answers) == bool(asked["answers"]):
            yield Row(kind, asked["question"].strip(), text, None, text.answers)


def _with_answers(page: Mapping[str, Any], answers: Sequence[str]) -> Text:
    """Return the text with the first place where one of the answers stands as words."""
    for answer in sorted(answers, key=len, reverse=True):
        match = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", page["text"], re.IGNORECASE)
        if match:
            return _text(page, [{"text": match[0], "start": match.start()}])
    return _text(page)


def _text(page: Mapping[str, Any], answers: Sequence[Mapping[str, Any]] = ()) -> Text:
    """Cut a text into sentences and mark those with an answer; the shortest answer is the span."""
    text = page["text"]
    sentences = tuple(split_sentences(text, "en"))
    starts = [0]
    for sentence in sentences:
        starts.append(starts[-1] + len(sentence))
    marked: set[int] = set()
    span = None
    for answer in sorted(answers, key=lambda answer: len(answer["text"])):
        start, end = answer["start"], answer["start"] + len(answer["text"])
        touched = [i for i in range(len(sentences)) if starts[i] < end and starts[i + 1] > start]
        if not span:
            marked.update(touched)
            if len(touched) == 1 and text[start:end] == answer["text"]:
                span = (touched[0], start - starts[touched[0]], end - starts[touched[0]])
    return Text(page["title"], sentences, frozenset(marked), span)


def _by_title(read: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in read:
        groups[one["title"]].append(one)
    return groups
