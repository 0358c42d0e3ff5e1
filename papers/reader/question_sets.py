"""Rows of a reader from question-answering sets, as `crag.papers.self_rag.truths` reads them.

kind         passage                                                            entity  answer
------------ ------------------------------------------------------------------ ------- ------
answered     one that holds the answer, with sentence and place                 1       1
removed      the same without the sentence that answers                         1       0
altered      the same, after a question with another number or name             unknown 0
neighbour    another of the same article or question, which lacks the answer    unknown 0
elsewhere    one of another article                                             0       0

What makes a row harder is drawn: titles left out, questions cut down to keywords, texts that begin
as the sections and lists of documentation do.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from crag.papers.reader.rows import ReadingRow
from crag.papers.self_rag.truths import Gold, Truth
from crag.parts import Passage
from crag.text.sentences import split_sentences

MOST_WORDS = 150
"""Words in a passage; longer ones are cut to the sentences around the answer."""
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
_NUMBER = re.compile(r"\b\d+\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: (?:of |the )?[A-Z][\w'-]+)*")


def reading_rows(truths: Sequence[Truth], each: int, seed: int) -> list[ReadingRow]:
    """Draw at most `each` rows of each kind, lay them out and shuffle them."""
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    kinds: Mapping[str, list[ReadingRow]] = defaultdict(list)
    for truth in truths:
        for row in _rows_of(truth, draw.choice(truths), draw):
            kinds[row.source].append(row)
    rows = [
        laid_out(row, draw)
        for of_kind in kinds.values()
        for row in draw.sample(of_kind, min(len(of_kind), each))
    ]
    draw.shuffle(rows)
    return rows


def _rows_of(truth: Truth, far: Truth, draw: random.Random) -> Iterator[ReadingRow]:
    """Yield the rows of one question; `far` is any other one."""
    question = truth.question.strip()
    for gold in truth.gold[:1]:
        passage = gold.passage
        yield _row("answered", question, passage, draw, gold, entity=1, answer=1)
        start, end = gold.place
        rest = passage.text[:start] + passage.text[end:]
        if rest.strip():
            yield _row("removed", question, passage._replace(text=rest), draw, entity=1)
        other = far.gold[0].passage.text if far.gold else ""
        if changed := altered(question, passage.text, other, draw):
            yield _row("altered", changed, passage, draw)
    if truth.others:
        wanted = _words(question)
        nearest = max(truth.others, key=lambda one: len(wanted & _words(one.text)))
        yield _row("neighbour", question, nearest, draw)
    own = {one.title for one in (*(gold.passage for gold in truth.gold), *truth.others)}
    if far.gold and far.gold[0].passage.title not in own:
        yield _row("elsewhere", question, far.gold[0].passage, draw, entity=0)


def _row(  # noqa: PLR0913 - what is known of it
    kind: str,
    question: str,
    passage: Passage,
    draw: random.Random,
    gold: Gold | None = None,
    *,
    entity: int | None = None,
    answer: int = 0,
) -> ReadingRow:
    """Return a row, its passage cut to the sentences around the answer, or around any."""
    sentences = split_sentences(passage.text, "en")
    ends = [sum(map(len, sentences[: place + 1])) for place in range(len(sentences))]
    low = draw.randrange(len(sentences))
    if gold is not None:
        low = next(place for place, end in enumerate(ends) if gold.start < end)
    high = low + 1
    while True:
        sides = [(low - 1, high)] if low else []
        sides += [(low, high + 1)] if high < len(sentences) else []
        sides = [side for side in sides if _count(sentences[slice(*side)]) <= MOST_WORDS]
        if not sides:
            break
        low, high = draw.choice(sides)
    text, shift = "".join(sentences[low:high]), ends[low] - len(sentences[low])
    span = evidence = None
    if gold is not None:
        span = (gold.start - shift, min(gold.end - shift, len(text)))
        start, end = gold.place
        evidence = [(start - shift, min(end - shift, len(text)))]
    return ReadingRow(
        question=question, title=passage.title, text=text, entity=entity, answer=answer,
        evidence=evidence or [], span=span, source=kind,
    )  # fmt: skip


def _count(sentences: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)


def laid_out(row: ReadingRow, draw: random.Random) -> ReadingRow:
    """Return a row as it is written, perhaps harder."""
    question = keywords(row.question) if draw.random() < KEYWORDS else row.question
    title = "" if draw.random() < NO_TITLE else row.title
    begins = ""
    if draw.random() < LAID_OUT:
        begins = draw.choice([f"## {row.title or 'Notes'}\n\n", "- ", "* "])
    by = len(begins)
    changes = {
        "question": question,
        "title": title,
        "text": begins + row.text,
        "evidence": [(start + by, end + by) for start, end in row.evidence or ()],
        "span": row.span and (row.span[0] + by, row.span[1] + by),
    }
    return row.model_copy(update=changes)


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
