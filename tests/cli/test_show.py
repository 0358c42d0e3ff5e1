"""What the terminal shows of an answer."""

from io import StringIO
from typing import Any

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
