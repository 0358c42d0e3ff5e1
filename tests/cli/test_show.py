"""What the terminal shows of an answer."""

from io import StringIO
from typing import Any

from rich.console import Console

from crag.cli.show import Trace
from crag.state import AnswerSentence, SentenceStatus


def sentence(start: int, end: int, status: SentenceStatus) -> AnswerSentence:
    return AnswerSentence(start=start, end=end, strips=[], status=status)


def answered(answer: str, *sentences: AnswerSentence) -> dict[str, Any]:
    return {
        "answer": answer,
        "abstained": False,
        "certainty": "answered",
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


def test_a_reply_that_is_asked_for_again_begins_on_a_line_of_its_own() -> None:
    printed = StringIO()
    trace = Trace(Console(file=printed, width=200))
    for message, text in (("one", "[4]"), ("two", "Ada "), ("two", "did.")):
        trace.token(text, message)
    trace.update("generate", answered("Ada did."))
    lines = [line for line in printed.getvalue().splitlines() if line]
    assert lines == ["[4]", "Ada did."]
