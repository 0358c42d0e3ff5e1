"""Text from web pages and documents as data: what could act in a prompt or a terminal is disarmed.

Readers still see the words: brackets that open a tag, a token or a citation become look-alikes,
and only what nobody sees is removed.
"""

import re
from contextvars import ContextVar

from crag.plain import well_formed

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]{0,500}(?:\x07|\x1b\\)"  # titles, links
    r"|\x1b[ -/]*[0-Z\\-~]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = "[\u180b-\u180d\u180f\u200c\u200d\ufe0e\ufe0f]"
"""In emoji and in scripts that need them they change what is read; more than two are never one."""
_STRAY = re.compile(
    rf"(?<=[!-~]){_JOINERS}+(?!\u20e3)|{_JOINERS}+(?=[!-~])|(?<={_JOINERS}{{2}}){_JOINERS}+"
)
_TAG = re.compile(
    r"[<＜﹤](?=\s*(?:[/\\]\s*)?(?:(?:passages?|question|conversation|paragraph|start_of_turn|end_of_turn|"
    r"start_of_image|system|user|assistant|human|think|tool_call|tool_response)\b"
    r"|(?:s|bos|eos|unk|pad)\s*[>＞﹥]|[<＜﹤]\s*(?:/\s*)?sys\b|sys\s*[>＞﹥]))",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[<＜﹤](\s*[|｜]\s*[\w▁:/.-]{1,60}\s*[|｜]\s*)[>＞﹥]")
_WORDS = (
    r"no\s*retrieval|retrieval|continue\s*to\s*use\s*evidence|relevant|irrelevant|"
    r"fully\s*supported|partially\s*supported|no\s*support\s*/\s*contradictory|"
    r"utility\s*:\s*\d+|/?\s*inst|/?\s*(?:system_prompt|available_tools|tool_calls|tool_results)"
)
_NUMBERS = r"\d+(?:\s*[,;–-]\s*\d+)*"
_BRACKETED = re.compile(rf"[\[［](\s*(?:{_WORDS}|{_NUMBERS})\s*)[\]］]", re.IGNORECASE)
DISARMS: ContextVar[bool] = ContextVar("crag_disarms", default=True)
"""Whether `neutral` disarms; benchmarks switch it off to compare with programs that do not."""


def neutral(text: str) -> str:
    """Disarm a text for prompts and terminals; ordinary text stays as it is.

    Removed: escape sequences, control, direction and invisible characters (joiners and variation
    selectors stay where no character of ASCII is beside them; flags made of tag characters lose
    them). With other brackets: our own tags, tags and tokens of chat
    templates, Self-RAG's reflection tokens, citation numbers. A text that went through this once
    is not changed by it again; none grows.
    """
    if not DISARMS.get():
        return text
    text = _TAG.sub("‹", without_controls(text))
    return _BRACKETED.sub(r"(\1)", _TOKEN.sub(r"‹\1›", text))


def without_controls(text: str) -> str:
    """Remove control sequences and invisible characters; of line breaks only the line feed stays.

    Escape sequences, control and direction characters become a space, so that the words around them
    stay apart. Half a pair of surrogates, which nothing can write, becomes U+FFFD.
    """
    text = _CONTROL.sub(" ", _ANSI.sub(" ", text.replace("\r\n", "\n")))
    text = well_formed(text)
    return _STRAY.sub("", _INVISIBLE.sub("", text))
