"""What a model writes to itself before it answers, which nobody is shown.

Servers that do not tell thoughts from the answer leave them in the text, between marks that differ
by the model. This module holds the one list of these marks.
"""

import re

_QUOTES = "`'“”‘’"
"""A mark beside one of these, or before a straight one, is only mentioned."""
_STEM = (
    r"(?:think|thought|reasoning|reflect(?:ion)?\b|scratch_?pad|analysis|monologue|cot\b|rationale"
    r"|deliberat|brainstorm|思考|思[维維]|推理|考え|생각|мысл|размышл|рассужд|gedan[ck]|gedacht|denken"
    r"|überleg|pens[éai]|r[ée]fle[xc]|razona|ragiona|racioc|myśl|düşün|تفكير|विचार)"
)
_NAME = rf"(?:[\w.▁-]{{0,20}}[:_▁])?(?:ant|inner)?{_STEM}[\w:.▁-]{{0,30}}"
"""What begins so names thoughts: `think`, `seed:think`, `antThinking`, `chain_of_thought`, 思考."""
_SQUARE = r"(?:think(?:ing)?|thoughts?|reasoning|analysis|思考|思[维維])"
_MARKS = (
    (rf"[<＜]\s?{_NAME}(?:\s[^<>\n]{{0,80}})?[>＞]", rf"[<＜][/／]\s?{_NAME}\s?[>＞]"),
    (rf"[\[【]{_SQUARE}[\]】]", rf"[\[【]/{_SQUARE}[\]】]"),
    (r"◁think▷", r"◁/think▷"),
    (
        rf"<[|｜](?!/|end)(?:{_NAME}|inner_prefix)[|｜]>",
        rf"<[|｜](?:/|end[_▁])?(?:{_NAME}|inner_suffix)[|｜]>",
    ),
    (
        r"<\|channel\|>\s*(?:analysis|commentary)\b",
        r"<\|channel\|>\s*final\b[^<\n]{0,20}(?:<\|constrain\|>[^<\n]{0,20})?<\|message\|>",
    ),
    (r"<\|channel>\s*thought\b", r"<channel\|>"),
)
_WORDED = (
    (rf"<!--\s?{_NAME}", r"-->"),
    (r"<details\b[^<>\n]{0,40}\breasoning\b[^<>\n]{0,80}>", r"</details>"),
    (r"(?:\A|(?<=\n))```think(?:ing)?\n", r"\n```(?=\n|\Z)"),
    (r"\A\s*Here(?: is|['’]s) my thought process:?", r"Here(?: is|['’]s) my response:?"),
    (r"\A\s*Thought:", r"\n\s*(?:Final )?Answer:"),
    (r"\[\[ ## reasoning ## \]\]", r"\[\[ ## (?:answer|response) ## \]\]"),
    (r"\A\s*Thinking\.\.\.\n", r"\n\.\.\.done thinking\."),
)
"""How thoughts begin and end, where the end says nothing alone."""
_CODE = (
    r"(?P<code>(?<=\n)(?P<fence>```|~~~)(?!think)[^\n`]*\n(?:.*?\n)??(?:(?P=fence)(?=\n|\Z)|\Z))"
)
"""Code shows marks; not where a model has fenced its whole reply."""
_OPENERS = r"[<＜\[【◁`~]"
"""What every mark begins with that does not begin a reply."""
_CLOSED = "|".join(
    rf"(?<![{_QUOTES}]){opening}(?![\"{_QUOTES}]).*?(?:{closing})"
    for opening, closing in _MARKS + _WORDED
)
_UNCLOSED = "|".join(
    rf"(?<![{_QUOTES}]){opening}(?![\"{_QUOTES}]).*\Z"
    for opening in (
        rf"(?<!\w){_MARKS[0][0]}",
        r"\[THINK\]",
        *(one for one, _ in _MARKS[2:] + _WORDED),
    )
)
_BLOCK = re.compile(
    rf"(?={_OPENERS}|\A)(?:{_CODE}|{_CLOSED}|{_UNCLOSED})", re.DOTALL | re.IGNORECASE
)
"""Thoughts from their opening mark to the closing one, or to the end where they were cut off."""
_CLOSINGS = "|".join(closing for _, closing in _MARKS)
_ENDS = re.compile(
    rf"{_CODE}|(?<![{_QUOTES}])(?:{_CLOSINGS})(?![\"{_QUOTES}])", re.DOTALL | re.IGNORECASE
)
"""Ends of thoughts whose opening mark stood in the prompt."""
_NESTED = [re.compile("|".join(marks), re.IGNORECASE) for marks in zip(*_MARKS[:2], strict=True)]
_BARE = re.compile(r"\Aanalysis(?=[A-Z]).*?(?:assistantfinal|\Z)", re.DOTALL)
"""The channels of gpt-oss where a server has removed their marks and left their names."""
_CONTROL = re.compile(
    rf"{_CODE}|(?<![{_QUOTES}])(?:<[|｜][\w▁]{{1,40}}[|｜]>(?:assistant(?![a-z]))?"
    r"|<\|?(?:end_of_)?turn\|?>|<think\s?/>|\[\[ ## completed ## \]\])",
    re.DOTALL,
)
"""Tokens of control, such as ``<|im_end|>``, which servers should not pass on."""
_WRAPPED = re.compile(
    r"\A\s*<(?P<name>answer|response|output|final(?:_answer)?)>(?P<answer>.*?)(?:</(?P=name)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""An answer in a tag of its own, as models that mark their thoughts write it."""
_BEGINNING = re.compile(
    r"(?:[<＜][^<>\n]{0,120}|<\|channel\|?>[^<\n]{0,20}|<\|\w{1,30}\|>[a-z]{0,9}|[\[【]/?\w{0,9}"
    r"|\[\[[ #\w]{0,20}\]?|◁/?\w{0,5}|`{1,3}\w{0,8}\n?)\Z"
)
"""What may be the beginning of a mark, at the end of a text that goes on."""
_FIRST_WORDS = (
    "analysis", "here is my thought process:", "here's my thought process:", "thinking...\n",
    "thought:",
)  # fmt: skip


def without_thoughts(text: str) -> str:
    """Return a reply without what its model wrote to itself, and without marks of channels."""
    text = _BLOCK.sub(_code, _BARE.sub("", text))
    ends = [one.end() for one in _ENDS.finditer(text) if not one["code"]]
    text = _CONTROL.sub(_code, text[ends[-1] :] if ends else text)
    return _WRAPPED.sub(r"\g<answer>", text).strip()


def _code(found: re.Match[str]) -> str:
    return found["code"] or ""


class AnswerStream:
    """The answer in a reply that arrives in pieces; what may begin a thought is held back."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = ""
        self._is_open = False
        """Whether what follows is shown up to the next mark."""

    def add(self, piece: str) -> str:
        """Return what a piece adds to the answer that is shown; it may be empty."""
        self._text += piece
        if self._is_open and not re.search(_OPENERS, piece):
            self._shown += piece
            return piece
        begun = self._text.lstrip().replace("’", "'").casefold()
        may_think = any(words.startswith(begun) for words in _FIRST_WORDS)
        opened, closed = (len(mark.findall(self._text)) for mark in _NESTED)
        text = _BEGINNING.sub("", self._text)
        answer = "" if may_think or opened > closed else without_thoughts(text)
        if text.endswith((" ", "\n")):
            answer += text[len(text.rstrip()) :] if answer else ""
        self._is_open = (
            bool(answer) and text == self._text and without_thoughts(f"{text}.") == f"{answer}."
        )
        if not answer.startswith(self._shown):  # Only now is it known that thoughts were shown.
            return ""
        added, self._shown = answer[len(self._shown) :], answer
        return added
