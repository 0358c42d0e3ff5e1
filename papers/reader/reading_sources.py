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

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

from crag.papers.loading.records import read_objects
from crag.papers.reader.reading_rows import ReadingRow

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
    "squad": 9000,
    "squad_removed": 2600,
    "squad_neighbour": 6000,
    "squad_altered": 3200,
    "squad_elsewhere": 700,
    "squad2": 3400,
    "policyqa": 2000,
    "policyqa_neighbour": 1400,
    "medquad": 1300,
    "medquad_other": 1800,
    "timeqa": 1000,
    "timeqa_other": 1400,
    "fitz": 1000,
    "popqa": 3200,
    "nq": 2000,
    "nq_other": 3000,
    "selqa": 1800,
    "selqa_removed": 800,
    "qed": 900,
    "entities": 3400,
}
"""Rows taken of each kind, drawn by the seed."""
NO_TITLE, KEYWORDS, LAID_OUT = 0.3, 0.1, 0.2
"""Shares of rows without title, with keywords for a question, and laid out as documentation."""

Random = random.Random
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
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]+(?: (?:of |the )?[A-Z][\w'-]+)*")
_OPPOSITES = {
    one: other
    for pair in """
        first last|most least|more less|before after|highest lowest|largest smallest
        increase decrease|increased decreased|north south|east west|northern southern
        eastern western|oldest youngest|early late|began ended|begin end|started stopped|won lost
        always never|minimum maximum|above below|longest shortest|inside outside|old new
        allowed forbidden|male female|public private|rich poor|import export|cause prevent
        with without|best worst|majority minority|support oppose|higher lower|greater fewer
        introduced abolished|founded dissolved|arrive leave|buy sell|strong weak
    """.strip()
    .replace("\n", "|")
    .split("|")
    for one, other in (pair.split(), pair.split()[::-1])
}


class Passage(NamedTuple):
    """Sentences of one text, those that hold the answer, and where in one of them it stands."""

    title: str
    sentences: tuple[str, ...]
    evidence: frozenset[int] = frozenset()
    span: tuple[int, int, int] | None = None
    """Sentence, start and end within it."""


class Row(NamedTuple):
    """One training row before it is laid out."""

    question: str
    passage: Passage
    entity: int | None
    answer: int | None
    evidence_known: bool = True
    span_known: bool = True


def reading_rows(data: Path, seed: int) -> list[ReadingRow]:
    """Draw the rows of each kind, as many as `ROWS` says, lay them out and shuffle them.

    Raises:
        DataError: a file of the folder is missing or is not JSONL.
    """
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    kinds = by_kind(data, draw)
    written: list[ReadingRow] = []
    for kind, most in ROWS.items():
        rows = kinds[kind]
        chosen = draw.sample(rows, min(len(rows), most))
        written += [laid_out(row, kind, draw) for row in chosen]
    draw.shuffle(written)
    return written


def mixed(
    rows: Sequence[ReadingRow], others: Sequence[ReadingRow], most: int | None, seed: int
) -> list[ReadingRow]:
    """Return `others` with at most `most` of the rows, drawn and shuffled by the seed."""
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    drawn = list(rows)
    draw.shuffle(drawn)
    everything = [*others, *drawn[:most]]
    draw.shuffle(everything)
    return everything


def by_kind(data: Path, draw: Random) -> dict[str, list[Row]]:
    """Return every row that can be made, by kind."""
    kinds: dict[str, list[Row]] = defaultdict(list)
    squad(read_objects(data / "reading/squad_train.jsonl"), kinds, draw)
    for row in questions_of(read_objects(data / "reading/squad2_unanswerable.jsonl")):
        if row.passage.title not in HELD_OUT:
            kinds["squad2"].append(row._replace(entity=1))
    policies(data, kinds, draw)
    medicine(data, kinds, draw)
    times(data, kinds)
    kinds["fitz"] += fitz(data)
    kinds["popqa"] += popqa(data)
    natural_questions(data, kinds)
    sections(data, kinds)
    kinds["entities"] += [
        Row(
            row["question"],
            passage(row["title"], row["text"]),
            entity=int(row["label"]),
            answer=None,
            evidence_known=False,
            span_known=False,
        )
        for row in read_objects(data / "evaluator/train.jsonl")
        if row["source"] in {"popqa", "wiki-template"}
    ]
    return kinds


def squad(found: Sequence[dict[str, Any]], kinds: dict[str, list[Row]], draw: Random) -> None:
    """Make the rows of SQuAD: right ones, neighbours, cut ones, altered ones and far ones."""
    articles = grouped(found)
    for one in found:
        neighbours = articles[one["title"]]
        for row in questions_of([one]):
            kinds["squad"].append(row._replace(entity=1))
            rest = without_evidence(row.passage)
            if len(rest.sentences) > 1:
                kinds["squad_removed"].append(Row(row.question, rest, 1, 0))
            other = hardest(
                row.question,
                [o for o in draw.sample(neighbours, min(8, len(neighbours))) if o is not one],
            )
            if other is not None and not holds(other, row):
                kinds["squad_neighbour"].append(
                    Row(row.question, passage(other["title"], other["text"]), None, 0)
                )
            changed = altered(row.question, one["text"], draw.choice(neighbours)["text"], draw)
            if changed is not None:
                plain = row.passage._replace(evidence=frozenset(), span=None)
                kinds["squad_altered"].append(Row(changed, plain, None, 0))
            far = draw.choice(found)
            if far["title"] != one["title"]:
                kinds["squad_elsewhere"].append(
                    Row(row.question, passage(far["title"], far["text"]), 0, 0)
                )


def policies(data: Path, kinds: dict[str, list[Row]], draw: Random) -> None:
    """Make rows of privacy policies; the name of a site says nothing, so it is no title."""
    found = read_objects(data / "reading/policyqa.jsonl")
    sites = grouped(found)
    for one in found:
        for row in questions_of([one]):
            kinds["policyqa"].append(row)
            other = draw.choice(sites[one["title"]])
            asked = {q["question"] for q in other["questions"]}
            if other is not one and row.question not in asked:
                # Policies answer the same thing in many places, so only far texts are negatives.
                far = draw.choice(found)
                if row.question not in {q["question"] for q in far["questions"]}:
                    shared = words(row.question) & words(far["text"])
                    if len(shared) <= 1:
                        kinds["policyqa_neighbour"].append(
                            Row(row.question, passage(far["title"], far["text"]), None, 0)
                        )


def medicine(data: Path, kinds: dict[str, list[Row]], draw: Random) -> None:
    """Make rows of medical pages: each section answers its question as a whole."""
    pages = read_objects(data / "reading/medquad.jsonl")
    for page in pages:
        for section in page["sections"]:
            right = passage(page["title"], section["text"])
            if len(section["text"].split()) <= MOST_WORDS:
                everything = frozenset(range(len(right.sentences)))
                right = right._replace(evidence=everything)
                kinds["medquad"].append(Row(section["question"], right, 1, 1, span_known=False))
            others = [o for o in page["sections"] if o["question"] != section["question"]]
            if others:
                wrong = passage(page["title"], draw.choice(others)["text"])
                kinds["medquad_other"].append(Row(section["question"], wrong, 1, 0))
            far = draw.choice(pages)
            if far is not page:
                wrong = passage(far["title"], draw.choice(far["sections"])["text"])
                kinds["medquad_other"].append(Row(section["question"], wrong, 0, 0))


def times(data: Path, kinds: dict[str, list[Row]]) -> None:
    """Make rows of TimeQA: the right page, and mostly the wrong time."""
    for row in read_objects(data / "reading/timeqa.jsonl"):
        for one in row["passages"]:
            text = passage(one["title"], one["text"], one.get("answers") or ())
            kind = "timeqa" if text.evidence else "timeqa_other"
            kinds[kind].append(Row(row["question"], text, 1, int(bool(text.evidence))))


def fitz(data: Path) -> Iterator[Row]:
    """Yield rows of the texts of a question, joined: together they answer it or do not."""
    for row in read_objects(data / "reading/fitz.jsonl"):
        if row["label"] in {"answerable", "absent", "detail_missing"}:
            answer = int(row["label"] == "answerable")
            text = " ".join(one["text"] for one in row["passages"])
            yield Row(row["question"], passage("", text), None, answer, not answer, not answer)


def popqa(data: Path) -> Iterator[Row]:
    """Yield rows of PopQA; whether the page of another answers is not said by a string in it."""
    for row in read_objects(data / "qa/popqa_train.jsonl"):
        for one in row["documents"]:
            right, held = bool(one["gold"]), bool(one["answer"])
            text = (
                with_answers(one, row["answers"])
                if held and right
                else passage(one["title"], one["text"])
            )
            known = right or not held
            yield Row(row["question"], text, int(right), int(held) if known else None, known, known)


def natural_questions(data: Path, kinds: dict[str, list[Row]]) -> None:
    """Make rows of NQ: passages with a gold answer, and mined ones without."""
    for row in read_objects(data / "qa/nq_train.jsonl"):
        for one in row["documents"]:
            if one["answer"]:
                text = with_answers(one, row["answers"])
                known = bool(text.evidence)
                kinds["nq"].append(Row(row["question"], text, 1, 1, known, known))
            else:
                text = passage(one["title"], one["text"])
                kinds["nq_other"].append(Row(row["question"], text, None, 0))


def sections(data: Path, kinds: dict[str, list[Row]]) -> None:
    """Make rows of sections whose sentences are judged one by one."""
    for name, kind in (("selqa", "selqa"), ("qed", "qed")):
        for row in read_objects(data / f"qa/{name}_sentences.jsonl"):
            documents = row["documents"]
            sentences = tuple(one["text"].strip() + " " for one in documents)
            evidence = frozenset(i for i, one in enumerate(documents) if one["answer"])
            if not evidence:
                continue
            text = Passage(documents[0]["title"], sentences, evidence)
            spans = [
                (i, place, place + len(answer))
                for i in sorted(evidence)
                for answer in sorted(row["answers"], key=len, reverse=True)
                if (place := sentences[i].find(answer)) >= 0
            ]
            text = text._replace(span=spans[0] if spans else None)
            kinds[kind].append(Row(row["question"], text, 1, 1, span_known=bool(spans)))
            rest = without_evidence(text)
            if kind == "selqa" and rest.sentences:
                kinds["selqa_removed"].append(Row(row["question"], rest, 1, 0))


def laid_out(row: Row, kind: str, draw: Random) -> ReadingRow:
    """Return the row as it is written: a passage as one text, with offsets into it."""
    found = shortened(row.passage, draw)
    title = "" if draw.random() < NO_TITLE and kind != "entities" else found.title
    if kind.startswith("policyqa"):
        title = "Privacy policy" if draw.random() < 1 / 2 else ""
    question = keywords(row.question) if draw.random() < KEYWORDS else row.question
    begin, between, end = layout(found.title, draw)
    text, starts = begin, []
    for number, sentence in enumerate(found.sentences):
        starts.append(len(text) + (len(between) if number and between else 0))
        if number:
            text = text.rstrip(" ") + between if between else text
            starts[-1] = len(text)
        text += sentence
    text = text.rstrip() + end
    evidence = [
        [starts[i], min(starts[i] + len(found.sentences[i].rstrip()), len(text))]
        for i in sorted(found.evidence)
    ]
    span = None
    if found.span is not None:
        place, start, stop = found.span
        span = [starts[place] + start, starts[place] + stop]
    return ReadingRow.model_validate(
        {
            "question": question,
            "title": title,
            "text": text,
            "entity": row.entity,
            "answer": row.answer,
            "evidence": evidence if row.evidence_known else None,
            "span": span if row.answer else None,
            "span_known": row.span_known and (span is not None or row.answer == 0),
            "source": kind,
        }
    )


def layout(title: str, draw: Random) -> tuple[str, str, str]:
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


def shortened(found: Passage, draw: Random) -> Passage:
    """Cut to the sentences around the evidence that have at most `MOST_WORDS` words."""
    sizes = [len(sentence.split()) for sentence in found.sentences]
    if sum(sizes) <= MOST_WORDS:
        return found
    centre = draw.choice(sorted(found.evidence)) if found.evidence else draw.randrange(len(sizes))
    if found.span is not None:
        centre = found.span[0]
    low = high = centre
    total = sizes[centre]
    while True:
        sides = [side for side in (low - 1, high + 1) if 0 <= side < len(sizes)]
        sides = [side for side in sides if total + sizes[side] <= MOST_WORDS]
        if not sides:
            break
        side = draw.choice(sides)
        low, high, total = min(low, side), max(high, side), total + sizes[side]
    return Passage(
        found.title,
        found.sentences[low : high + 1],
        frozenset(i - low for i in found.evidence if low <= i <= high),
        None if found.span is None else (found.span[0] - low, *found.span[1:]),
    )


def altered(question: str, text: str, other: str, draw: Random) -> str | None:
    """Change a question so that `text` no longer answers it, or return None."""
    ways: list[Callable[[], str | None]] = [
        lambda: _another_number(question, text, draw),
        lambda: _another_name(question, text, other, draw),
        lambda: _opposite(question),
    ]
    draw.shuffle(ways)
    return next((changed for way in ways if (changed := way()) is not None), None)


def _another_number(question: str, text: str, draw: Random) -> str | None:
    match = _NUMBER.search(question)
    if match is None or not match[0].isdigit():
        return None
    value = int(match[0])
    changed = str(max(1, value + draw.choice([-31, -12, -7, -3, 3, 5, 9, 14, 40])))
    if changed in text:
        return None
    return question[: match.start()] + changed + question[match.end() :]


def _another_name(question: str, text: str, other: str, draw: Random) -> str | None:
    names = [match for match in _NAME.finditer(question) if match[0] in text]
    others = [match[0] for match in _NAME.finditer(other) if match[0] not in text]
    if not names or not others:
        return None
    match = draw.choice(names)
    return question[: match.start()] + draw.choice(others) + question[match.end() :]


def _opposite(question: str) -> str | None:
    parts = question.split(" ")
    places = [i for i, part in enumerate(parts) if part in _OPPOSITES]
    if not places:
        return None
    parts[places[0]] = _OPPOSITES[parts[places[0]]]
    return " ".join(parts)


def keywords(question: str) -> str:
    """Return the question as someone types it into a search box."""
    left = [word for word in re.findall(r"[\w'.-]+", question.lower()) if word not in _STOP]
    return " ".join(left) if len(left) > 1 else question


def hardest(question: str, found: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the paragraph that shares most words with the question."""
    asked = words(question)
    return max(found, key=lambda one: len(asked & words(one["text"])), default=None)


def words(text: str) -> set[str]:
    """Return the words of a text that carry meaning."""
    return {word for word in re.findall(r"\w+", text.lower()) if word not in _STOP}


def holds(other: Mapping[str, Any], row: Row) -> bool:
    """Say whether another paragraph holds the answer's words too."""
    if row.passage.span is None:
        return False
    sentence, start, end = row.passage.span
    return row.passage.sentences[sentence][start:end].lower() in other["text"].lower()


def questions_of(found: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Yield a row for each question of each paragraph."""
    for one in found:
        for question in one["questions"]:
            text = passage(one["title"], one["text"], question["answers"])
            if bool(text.evidence) == bool(question["answers"]):
                yield Row(question["question"].strip(), text, None, int(bool(text.evidence)))


def with_answers(document: Mapping[str, Any], answers: Sequence[str]) -> Passage:
    """Return the passage with the first place where one of the answers stands as words."""
    text = document["text"]
    for answer in sorted(answers, key=len, reverse=True):
        match = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE)
        if match:
            found = [{"text": match[0], "start": match.start()}]
            return passage(document["title"], text, found)
    return passage(document["title"], text)


def passage(title: str, text: str, answers: Sequence[Mapping[str, Any]] = ()) -> Passage:
    """Cut a text into sentences and mark those with an answer; the shortest answer is the span."""
    pieces = tuple(segment("en", text))
    sentences = pieces if "".join(pieces) == text else (text,)
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
        if not span and len(touched) == 1 and text[start:end] == answer["text"]:
            span = (touched[0], start - starts[touched[0]], end - starts[touched[0]])
    return Passage(title, sentences, frozenset(marked), span)


def without_evidence(found: Passage) -> Passage:
    """Return the passage with the answering sentences taken out."""
    kept = tuple(s for i, s in enumerate(found.sentences) if i not in found.evidence)
    return Passage(found.title, kept)


def grouped(found: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group rows by title."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in found:
        groups[one["title"]].append(one)
    return groups
