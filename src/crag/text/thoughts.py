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
_TAGS = rf"[<＜]\s?{_NAME}(?:\s[^<>\n]{{0,80}})?[>＞]", rf"[<＜][/／]\s?{_NAME}\s?[>＞]"
_BRACKETS = rf"[\[【]{_SQUARE}[\]】]", rf"[\[【]/{_SQUARE}[\]】]"
_OPENING = "|".join(
    (
        _TAGS[0],
        r"\[THINK\]",  # Other words in brackets may be headings: their end shows what they are.
        r"◁think▷",
        rf"<[|｜](?!/|end)(?:{_NAME}|inner_prefix)[|｜]>",
        r"<\|channel\|>\s*(?:analysis|commentary)\b",
        r"<\|channel>\s*thought\b",
        r"<details\b[^<>\n]{0,40}\breasoning\b[^<>\n]{0,80}>",
        r"(?-i:\Aanalysis(?=[A-Z]))",  # gpt-oss, where a server has removed its marks.
    )
)
_CLOSING = "|".join(
    (
        _TAGS[1],
        _BRACKETS[1],
        r"◁/think▷",
        rf"<[|｜](?:/|end[_▁])?(?:{_NAME}|inner_suffix)[|｜]>",
        r"<\|channel\|>\s*final\b[^<\n]{0,20}(?:<\|constrain\|>[^<\n]{0,20})?<\|message\|>",
        r"<channel\|>",
    )
)
_END = re.compile(rf"{_CLOSING}|</details>|(?-i:assistantfinal)", re.IGNORECASE)
"""Of thoughts whose beginning is there; some of these say nothing alone."""
_WORDED = re.compile(
    r"\A\s*(?:Here(?: is|['’]s) my thought process:?.*?(?:Here(?: is|['’]s) my response:?|\Z)"
    r"|Thought:.*?(?:\n\s*(?:Final )?Answer:|\Z)|Thinking\.\.\.\n.*?(?:\n\.\.\.done thinking\.|\Z)"
    r"|```think(?:ing)?\n.*?(?:\n```(?=\n|\Z)|\Z))",
    re.DOTALL | re.IGNORECASE,
)
"""Thoughts that begin a reply, and whose ends say nothing alone."""
_MARK = re.compile(
    # Code shows marks; not where a model has fenced its whole reply.
    r"(?P<code>(?<=\n)(?P<head>(?P<fence>```|~~~)[^\n`]*\n)(?:.*?\n)??"
    r"(?:(?P<foot>(?P=fence)(?=\n|\Z))|\Z))"
    rf"|(?<![{_QUOTES}])(?:(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})"
    r"|(?P<control><[|｜][\w▁]{1,40}[|｜]>(?:assistant(?-i:(?![a-z])))?|<\|?(?:end_of_)?turn\|?>"
    rf"|<think\s?/>))(?![\"{_QUOTES}])",
    re.DOTALL | re.IGNORECASE,
)
"""The marks of thoughts, and tokens of control, which servers should not pass on."""
_OPENED, _CLOSED = (
    re.compile("|".join(marks), re.IGNORECASE) for marks in zip(_TAGS, _BRACKETS, strict=True)
)
_WRAPPING = re.compile(r"<(?P<name>answer|response|output|final(?:_answer)?)>", re.IGNORECASE)
_WRAPPED = re.compile(
    rf"\A\s*{_WRAPPING.pattern}(?P<answer>.*?)(?:</(?P=name)>|\Z)", re.DOTALL | re.IGNORECASE
)
"""An answer in a tag of its own, as models that mark their thoughts write it."""
_FIRST_WORDS = (
    "analysis", "here is my thought process:", "here's my thought process:", "thinking...\n",
    "thought:", "```thinking\n",
)  # fmt: skip
_BEGINNING = re.compile(
    r"(?:[<＜\[【◁][^<>＞\]】▷\n]{0,120}|<\|channel\|?>[^<\n]{0,20}|<\|\w{1,30}\|>[a-z]{0,9}"
    r"|`{1,3}\w{0,8}\n?)\Z"
)
"""What may be the beginning of a mark, at the end of a text that goes on."""


def without_thoughts(text: str) -> str:
    """Return a reply without what its model wrote to itself, and without marks of channels."""
    text, said, at = _WORDED.sub("", text), "", 0
    while found := _MARK.search(text, at):
        said += text[at : found.start()]
        at = found.end()
        match found.lastgroup:
            case "code":
                said += found[0]
            case "opening":
                end, before = _END.search(text, at), text[: found.start()]
                is_type = not end and before[-1:].isalnum() and _OPENED.fullmatch(found[0])
                said += found[0] if is_type else ""  # Such as List<Thought>.
                at = end.end() if end else at if is_type else len(text)
            case "closing":  # The opening mark stood in the prompt.
                said = ""
    return _WRAPPED.sub(r"\g<answer>", said + text[at:]).strip()


class AnswerStream:
    """The answer in a reply that arrives in pieces; what may begin a thought is held back."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = ""

    def add(self, piece: str) -> str:
        """Return what a piece adds to the answer that is shown; it may be empty."""
        self._text += piece
        begun = self._text.lstrip().replace("’", "'").casefold()
        may_think = any(words.startswith(begun) for words in _FIRST_WORDS)
        opened, closed = (len(mark.findall(self._text)) for mark in (_OPENED, _CLOSED))
        text = _BEGINNING.sub("", self._text)
        answer = "" if may_think or opened > closed else without_thoughts(text)
        if text.endswith((" ", "\n")):
            answer += text[len(text.rstrip()) :] if answer else ""
        is_open = answer and text == self._text and without_thoughts(f"{text}.") == f"{answer}."
        if not answer.startswith(self._shown):  # Only now is it known that thoughts were shown.
            return ""
        added, self._shown = answer[len(self._shown) :], answer
        if is_open and not _WRAPPING.search(text):  # What was shown is not read again.
            marks = _MARK.finditer(f"\n{answer}")  # Not those of the thoughts before it.
            code = (one["head"] for one in marks if one["code"] and not one["foot"])
            self._text = self._shown = f".\n{next(code, '')}{text[-1]}"
        return added
