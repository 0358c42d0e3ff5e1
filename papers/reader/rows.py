"""Rows that a reader learns from: from question sets, and with their tokens and labels.

kind         passage                                                            entity  answer
------------ ------------------------------------------------------------------ ------- ------
answered     one that holds the answer, with sentence and place                 1       1
removed      the same without the sentence that answers                         1       0
neighbour    another of the same article or question, which lacks the answer    unknown 0
elsewhere    one of another article                                             0       0
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crag.correction.strips import with_title
from crag.papers.self_rag.truths import Truth
from crag.parts import Passage

UNKNOWN = -100
"""A label that takes no part in the loss."""
Span = tuple[int, int]
NO_TITLE = 0.3
"""Share of the rows of question sets that are without title."""


class ReadingRow(BaseModel):
    """One question and one passage, with what is known about them; null is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    question: str = Field(min_length=1)
    title: str = ""
    """Title of the page, with its heading path where there is one; may be empty."""
    text: str = Field(min_length=1)
    entity: int | None = Field(default=None, ge=0, le=1)
    """Whether the passage is about what the question asks about."""
    answer: int | None = Field(default=None, ge=0, le=1)
    """Whether it holds the answer."""
    evidence: list[Span] | None = None
    """Ranges of `text` that hold the answer; empty where there is none."""
    span: Span | None = None
    """Where in `text` the answer itself stands."""
    span_known: bool = True
    """Whether `span` says it; if not, no place is learned from this row."""
    source: str = ""

    @model_validator(mode="after")
    def _inside(self) -> "ReadingRow":
        for start, end in [*(self.evidence or ()), *([self.span] if self.span else ())]:
            if not 0 <= start < end <= len(self.text):
                message = f"{start} to {end} is no range of a text of {len(self.text)} characters"
                raise ValueError(message)
        return self


def reading_rows(truths: Sequence[Truth], each: int, seed: int) -> list[ReadingRow]:
    """Draw at most `each` rows of each kind and shuffle them; some are without their title."""
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    kinds: Mapping[str, list[ReadingRow]] = defaultdict(list)
    for truth in truths:
        for row in _rows_of(truth, draw.choice(truths)):
            titled = row if draw.random() >= NO_TITLE else row.model_copy(update={"title": ""})
            kinds[row.source].append(titled)
    rows = [
        row for of_kind in kinds.values() for row in draw.sample(of_kind, min(len(of_kind), each))
    ]
    draw.shuffle(rows)
    return rows


def _rows_of(truth: Truth, far: Truth) -> Iterator[ReadingRow]:
    """Yield the rows of one question; `far` is any other one."""

    def row(kind: str, passage: Passage, entity: int | None = None, **known: Any) -> ReadingRow:
        about = {"title": passage.title, "text": passage.text, "entity": entity, "source": kind}
        asked = {"question": truth.question.strip(), "answer": 0, "evidence": []}
        return ReadingRow.model_validate(asked | about | known)

    for gold in truth.gold[:1]:
        place, text = gold.place, gold.passage.text
        span = (gold.start, min(gold.end, len(text)))
        yield row("answered", gold.passage, 1, answer=1, evidence=[place], span=span)
        rest = text[: place[0]] + text[place[1] :]
        if rest.strip():
            yield row("removed", gold.passage._replace(text=rest), 1)
    if truth.others:
        wanted = set(truth.question.lower().split())
        shared = [len(wanted & set(one.text.lower().split())) for one in truth.others]
        yield row("neighbour", truth.others[shared.index(max(shared))])
    own = {one.title for one in (*(gold.passage for gold in truth.gold), *truth.others)}
    if far.gold and far.gold[0].passage.title not in own:
        yield row("elsewhere", far.gold[0].passage, 0)


def tokenised(row: ReadingRow, tokenizer: Any, max_length: int) -> dict[str, Any]:
    """Return the tokens of a row and what is known of them."""
    text = with_title(row.title, row.text)
    encoded = tokenizer(
        row.question, text, truncation="longest_first", max_length=max_length,
        return_offsets_mapping=True,
    )  # fmt: skip
    header = len(text) - len(row.text)
    offsets = zip(encoded["offset_mapping"], encoded.sequence_ids(), strict=True)
    places = [
        (start - header, end - header) if segment == 1 and start >= header else None
        for (start, end), segment in offsets
    ]
    evidence = [
        UNKNOWN
        if place is None or row.evidence is None
        else int(any(start < place[1] and place[0] < end for start, end in row.evidence))
        for place in places
    ]
    first, last = _span_labels(row, places)
    cut_off = bool(row.evidence) and 1 not in evidence
    return {
        "input_ids": encoded["input_ids"],
        "token_type_ids": encoded["token_type_ids"],
        "entity": UNKNOWN if row.entity is None else row.entity,
        "answer": UNKNOWN if cut_off or row.answer is None else row.answer,
        "evidence": evidence,
        "first": first,
        "last": last,
    }


def _span_labels(row: ReadingRow, places: Sequence[Span | None]) -> Span:
    """Return the first and the last token of the answer, both 0 where there is none."""
    if not row.span_known or row.answer is None:
        return UNKNOWN, UNKNOWN
    if row.span is None:
        return (0, 0) if row.answer == 0 else (UNKNOWN, UNKNOWN)
    start, end = row.span
    inside = [i for i, p in enumerate(places) if p is not None and p[0] < end and start < p[1]]
    whole = inside and places[inside[-1]][1] >= end  # type: ignore[index]
    return (inside[0], inside[-1]) if whole else (UNKNOWN, UNKNOWN)


def padded(examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a batch as tensors, filled up to its longest row."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    batch: dict[str, Any] = {
        name: pad_sequence(
            [torch.tensor(one[name]) for one in examples], batch_first=True, padding_value=filler
        )
        for name, filler in (("input_ids", 0), ("token_type_ids", 0), ("evidence", UNKNOWN))
    }
    masks = [torch.ones(len(one["input_ids"]), dtype=torch.long) for one in examples]
    batch["attention_mask"] = pad_sequence(masks, batch_first=True)
    for name in ("entity", "answer", "first", "last"):
        batch[name] = torch.tensor([example[name] for example in examples])
    return batch
