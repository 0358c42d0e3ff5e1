"""The critiques of a reflection as a table."""

from collections.abc import Sequence

from crag.reflection.cleaning import cleaned
from crag.state import Critique
from crag.views.display import Table, shortened

_NUMBERS = ["IsRel", "IsSup", "IsUse", "sequence", "score"]
_TEXT = 70


def critique_table(critiques: Sequence[Critique]) -> Table:
    """List candidates in the order of their critiques: text, each critique, and the outcome.

    Candidates in the answer are bold. IsRel, IsSup and the sequence score are in [0, 1], IsUse is
    in [-1, 1]; a missing critique is empty.
    """
    chosen = [place for place, one in enumerate(critiques) if one["chosen"]]
    segments = {critique["segment"] for critique in critiques}
    columns = ["passage", "candidate", *_NUMBERS, "what became of it"]
    rows = [_row(critique) for critique in critiques]
    if len(segments) > 1:
        columns.insert(0, "segment")
        rows = [[c["segment"] + 1, *row] for c, row in zip(critiques, rows, strict=True)]
    return Table(columns, rows, bold=chosen, numeric=_NUMBERS)


def _row(critique: Critique) -> list[object]:
    passage = "none" if critique["passage"] is None else str(critique["passage"] + 1)
    numbers = (
        critique["relevance"],
        critique["support"],
        critique["utility"],
        critique["sequence"],
        critique["total"],
    )
    said = shortened(cleaned(critique["text"]), _TEXT)
    return [passage, said, *(_number(number) for number in numbers), critique["why"]]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
