"""What a model writes to itself before it answers, which nobody is shown.

Servers that do not tell thoughts from the answer leave them in the text, between marks that differ
by the model. This module holds the one list of these marks.
"""

import re

_TAGS = r"think|thinking|thought|thoughts|reasoning|seed:think"
_QUOTES = "`\"'“”‘’"
"""A mark beside one of these is only mentioned."""
_OPENINGS = (
    rf"<(?:{_TAGS})>", r"\[THINK\]", "◁think▷", r"<\|begin_of_thought\|>",
    r"<\|channel\|>\s*(?:analysis|commentary)\b", r"<\|channel>\s*thought\b",
)  # fmt: skip
_CLOSINGS = (
    rf"</(?:{_TAGS})>", r"\[/THINK\]", "◁/think▷", r"<\|end_of_thought\|>",
    r"<\|channel\|>\s*final\s*<\|message\|>", r"<channel\|>",
)  # fmt: skip
_BLOCK = re.compile(
    "|".join(
        rf"(?<![{_QUOTES}]){opening}(?![{_QUOTES}]).*?(?:{closing}|\Z)"
        for opening, closing in zip(_OPENINGS, _CLOSINGS, strict=True)
    ),
    re.DOTALL | re.IGNORECASE,
)
"""Thoughts from their opening mark to the closing one, or to the end where they were cut off."""
_REST = re.compile(
    rf"\A.*(?<![{_QUOTES}])(?:{'|'.join(_CLOSINGS)})(?![{_QUOTES}])", re.DOTALL | re.IGNORECASE
)
"""Thoughts whose opening mark stood in the prompt, up to the last closing mark."""
_BARE = re.compile(r"\Aanalysis(?=[A-Z]).*?(?:assistantfinal|\Z)", re.DOTALL)
"""The channels of gpt-oss where a server has removed their marks and left their names."""
_CONTROL = re.compile(
    r"<\|(?:start|return|end|channel|message|call)\|>(?:assistant\b)?|<\|?(?:end_of_)?turn\|?>"
)
_BEGINNING = re.compile(
    r"(?:<[^<>\n]{0,30}|<\|?channel\|?>\s*\w*|\[/?[a-z]{0,5}|◁/?\w{0,5}|\Aa[nalysi]{0,7})\Z",
    re.IGNORECASE,
)
"""What may be the beginning of a mark, at the end of a text that goes on."""


def without_thoughts(text: str) -> str:
    """Return a reply without what its model wrote to itself, and without marks of channels."""
    return _CONTROL.sub("", _REST.sub("", _BLOCK.sub("", _BARE.sub("", text)))).strip()


class AnswerStream:
    """The answer in a reply that arrives in pieces; what may begin a thought is held back."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = ""

    def add(self, piece: str) -> str:
        """Return what a piece adds to the answer that is shown; it may be empty."""
        self._text += piece
        return self._grown(_BEGINNING.sub("", self._text))

    def end(self) -> str:
        """Return what was held back, as nothing follows."""
        return self._grown(self._text)

    def _grown(self, text: str) -> str:
        answer = without_thoughts(text)
        if text.endswith((" ", "\n")):
            answer += text[len(text.rstrip()) :] if answer else ""
        if not answer.startswith(self._shown):  # Only now is it known that thoughts were shown.
            return ""
        added, self._shown = answer[len(self._shown) :], answer
        return added
