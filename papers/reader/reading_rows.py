"""Rows that a reader learns from, and their tokens and labels in an order that one seed fixes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crag.correction.scoring import with_title
from crag.papers.evaluator.batches import like_length_order

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

UNKNOWN = -100
"""A label that takes no part in the loss."""
Span = tuple[int, int]


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


def in_batches_of_like_length(rows: Sequence[ReadingRow], size: int, seed: int) -> list[int]:
    """Return the indices of one pass over `rows`, batch after batch; the same for the same seed.

    What is left over when the rows are cut into batches comes at the end.
    """
    draw = random.Random(seed)  # noqa: S311 - an order, no secret
    order, left_over = like_length_order([len(row.text) for row in rows], size, draw)
    return order + left_over


@dataclass(frozen=True)
class ReadingExamples:
    """A map-style data set of tokenised rows with their labels, in `order`."""

    rows: Sequence[ReadingRow]
    order: Sequence[int]
    tokenizer: "PreTrainedTokenizerBase"
    max_length: int

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.tokenised(self.rows[self.order[index]])

    def tokenised(self, row: ReadingRow) -> dict[str, Any]:
        """Return the tokens of a row and what is known of them."""
        text = with_title(row.title, row.text)
        encoded = self.tokenizer(
            row.question,
            text,
            truncation="longest_first",
            max_length=self.max_length,
            return_offsets_mapping=True,
        )
        header = len(text) - len(row.text)
        places = [
            (start - header, end - header) if segment == 1 and start >= header else None
            for (start, end), segment in zip(
                encoded["offset_mapping"], encoded.sequence_ids(), strict=True
            )
        ]
        evidence = _evidence_labels(row, places)
        first, last = _span_labels(row, places)
        cut_off = bool(row.evidence) and 1 not in evidence
        return {
            "input_ids": encoded["input_ids"],
            "token_type_ids": encoded["token_type_ids"],
            "entity": _known(row.entity),
            "answer": UNKNOWN if cut_off else _known(row.answer),
            "evidence": evidence,
            "first": first,
            "last": last,
        }


def padded(examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a batch as tensors, filled up to its longest row."""
    import torch

    longest = max(len(example["input_ids"]) for example in examples)
    batch: dict[str, Any] = {}
    for name, filler in (("input_ids", 0), ("token_type_ids", 0), ("evidence", UNKNOWN)):
        rows = [e[name] + [filler] * (longest - len(e[name])) for e in examples]
        batch[name] = torch.tensor(rows)
    sizes = torch.tensor([len(example["input_ids"]) for example in examples])
    batch["attention_mask"] = (torch.arange(longest)[None] < sizes[:, None]).long()
    for name in ("entity", "answer", "first", "last"):
        batch[name] = torch.tensor([example[name] for example in examples])
    return batch


def _known(label: int | None) -> int:
    return UNKNOWN if label is None else label


def _evidence_labels(row: ReadingRow, places: Sequence[Span | None]) -> list[int]:
    """Return 1 for tokens of the evidence, 0 for others of the text, `UNKNOWN` for the rest."""
    if row.evidence is None:
        return [UNKNOWN] * len(places)
    return [
        UNKNOWN
        if place is None
        else int(any(s < place[1] and place[0] < e for s, e in row.evidence))
        for place in places
    ]


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
