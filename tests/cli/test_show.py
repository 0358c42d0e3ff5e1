"""What the terminal shows of an answer."""

import re
from io import StringIO
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from crag.answering.outcome import answer_message
from crag.cli.show import Trace
from crag.state import AnswerSentence, Citation, Quote, SentenceStatus, Source


def sentence(start: int, end: int, status: SentenceStatus) -> AnswerSentence:
    return AnswerSentence(start=start, end=end, strips=[], status=status)


def answered(answer: str, *sentences: AnswerSentence) -> dict[str, Any]:
    return {
        "answer": answer,
        "outcome": "answered",
        "citations": [],
        "sentences": list(sentences),
    }


def test_sentences_that_no_source_supports_are_named_below_the_answer() -> None:
    printed = StringIO()
    trace = Trace(Console(file=printed, width=200))
    sentences = sentence(0, 8, "cited"), sentence(9, 19, "unsupported")
    trace.update("generate", answered("Ada did. It rained.", *sentences))
    assert "no source supports: It rained." in printed.getvalue()
    assert "supports: Ada did." not in printed.getvalue()


def test_what_could_be_quoted_besides_is_printed_as_it_is_read_where_all_is_asked_for() -> None:
    text = ".. note:: See :ref:`Ada <x>`."
    quote = Quote(start=0, end=len(text), position="line 3", span=None, text="Note: See Ada.")
    source = Source(id="a", title="Ada", url="ada.md", position="line 3")
    update = answered("Ada did [1].")
    more = [Citation(number=2, text=text, source=source, quotes=[quote])]
    update["messages"] = [answer_message("Ada did [1].", [], more)]
    for verbose, shown in ((True, "“Note: See Ada.”\n  [2] ada.md, line 3"), (False, "1 more")):
        printed = StringIO()
        Trace(Console(file=printed, width=200), verbose=verbose).update("generate", update)
        assert shown in printed.getvalue()
        assert ":ref:" not in printed.getvalue()


def test_a_terminal_shows_the_answer_once_and_takes_its_drafts_back() -> None:
    printed = StringIO()
    trace = Trace(Console(file=printed, width=10, force_terminal=True, color_system=None))
    pieces = (("one", "[4]"), ("two", "Ada Lovelace "), ("two", "did.\n日本"), ("two", ""))
    for message, text in pieces:
        trace.token(text, message)
    trace.update("generate", answered("Ada Lovelace did [1]."))
    rows = [row.strip() for row in screen(printed.getvalue(), 10)]
    assert rows == ["", "Ada", "Lovelace", "did [1]."]


def test_addresses_and_tags_are_printed_without_what_markdown_needs() -> None:
    printed = StringIO()
    Trace(Console(file=printed, width=200)).update(
        "generate",
        answered(r"See Ada (<https://example.org/a>). \<b> is a tag, **\*b, `\*` and \d are none."),
    )
    assert (
        printed.getvalue().strip()
        == r"See Ada (https://example.org/a). <b> is a tag, ***b, `\*` and \d are none."
    )


def screen(output: str, width: int) -> list[str]:
    """Return the rows that a terminal of this width shows, for the few codes used here."""
    rows, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[\??\d*[AKlh]|[^\x1b]", output):
        if piece.endswith("A") and len(piece) > 1:
            row -= int(piece[2:-1])
        elif piece.endswith("K") and len(piece) > 1:
            rows[row] = ""
        elif piece == "\r":
            column = 0
        elif len(piece) == 1:
            wide = cell_len(piece)
            if piece == "\n" or column + wide > width:
                row, column = row + 1, 0
                rows += [""] * (row + 1 - len(rows))
            if piece != "\n":
                rows[row], column = rows[row] + piece, column + wide
    while rows and not rows[-1]:
        rows.pop()
    return rows
