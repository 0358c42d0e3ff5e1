"""Rows that a reader learns from, with their tokens and labels."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from crag.correction.scoring import with_title

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
