"""What the terminal shows of an answer."""

import pytest

from crag.cli.show import show
from crag.state import AnswerSentence, SentenceStatus


def sentence(start: int, end: int, status: SentenceStatus) -> AnswerSentence:
    return AnswerSentence(start=start, end=end, strips=[], status=status)


def test_what_no_source_supports_is_named_and_markdown_is_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = r"Ada did. It \<b> rained, [\*b]."
    sentences = [sentence(0, 8, "cited"), sentence(9, len(said), "unsupported")]
    show({"question": "Who?", "answer": said, "outcome": "likely", "sentences": sentences})
    shown = capsys.readouterr().out
    assert "\nAda did. It <b> rained, [*b].\n" in shown
    assert "no source supports: It " in shown
    assert "supports: Ada did." not in shown
    assert shown.endswith("\nlikely\n")
