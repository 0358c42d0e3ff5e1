"""Search queries: clean up a model's reply, or extract keywords without a model."""

import re

from crag.text.words import STOP_WORDS, question_words, words

MOST_WORDS = 32
"""A reply with more words is an essay, not a query."""
_FENCE_OR_TAG = re.compile(r"^[^\S\n]*```\w*[^\S\n]*$|</?[a-z_]+>", re.MULTILINE)
_LEAD = re.compile(r"\W{0,20}([^:：!！\n]{0,150}?)\s?[:：!！](?:[*_\"]*\s+|(?<=[：！])|[*_\s]*\Z)")
"""What a chatty model writes before what it was asked for, in any language."""
_POLITE = re.compile(r"sure|certainly|of course|absolutely|here(?:[’']s| is| are)", re.IGNORECASE)
_TITLE = re.compile(r"(?:[A-Z][\w'’.-]* ){1,4}[A-Z0-9][\w'’.-]*")
_ITEM = re.compile(r"\A\s*(?:[-*•]|\d{1,2}[.)])\s+")
_OPERATOR = re.compile(
    r"(?<!\S)(?:[-+]?(?i:site|filetype|ext|intitle|allintitle|inurl|allinurl|intext|inanchor|cache|"
    r"related|link|info|before|after|lang|insource|incategory|prefix|hastemplate):\S*"
    r"|(?:AND|OR|NOT)(?!\S))"
)
_PREFIX = re.compile(r"(?<!\S)(?:[-+~]|!+|:(?=\w))(?=\w)")
_MARKS = re.compile(r"[\"“”„«»`*|<>{}\[\]()\\^\x00-\x1f\x7f]")
_WORD = re.compile(r"\w[\w'’.&/+-]*", re.UNICODE)
_STOP_WORDS = STOP_WORDS | {"give", "know", "let", "many", "much", "name", "please", "tell"}


def without_chatter(reply: str, about: str) -> str:
    """Return what a model was asked for, without what it wrote before and after it.

    That is what has no word of the text that all is `about`: up to a colon or an exclamation mark,
    unless it is a title, and in paragraphs of its own; and paragraphs behind the right one.
    """
    known, text = {*question_words(about)}, _FENCE_OR_TAG.sub("", reply).strip()
    while lead := _LEAD.match(text):
        is_said = known & {*words(lead[1])} and not _POLITE.match(lead[1])
        if is_said or _TITLE.fullmatch(lead[1]):
            break
        text = text[lead.end() :].strip()
    paragraphs = [one.strip() for one in text.split("\n\n") if one.strip()]
    return next((one for one in paragraphs if known & {*words(one)}), (*paragraphs, "")[0])


def read_query(reply: str, question: str = "") -> str | None:
    """Return the query for a question in a model's reply, or None if there is none.

    Labels, quotation marks and search operators are removed, and lines are joined. A reply of more
    than 32 words, or without a letter or digit, is not a query.
    """
    written = without_chatter(reply, question).splitlines()
    lines = (_ITEM.sub("", line, count=1).strip(" ,;") for line in written)
    text = without_operators(", ".join(filter(None, lines)))
    if not any(character.isalnum() for character in text) or len(text.split()) > MOST_WORDS:
        return None
    return text


def without_operators(text: str) -> str:
    """Remove what search services would read as an operator."""
    text = _OPERATOR.sub(" ", _MARKS.sub(" ", text))
    text = re.sub(r"\s+,", ",", " ".join(_PREFIX.sub("", text).split()))
    return text.lstrip(" -+!~,;'").rstrip(" ,;'")


def keywords(question: str) -> str:
    """Return the keywords of a question, in order and without duplicates.

    English question and function words are removed, unless nothing else would be left.
    """
    plain = without_operators(question)
    distinct: dict[str, str] = {}
    for word in _WORD.findall(plain):
        bare = word.rstrip(".-/&+'’").removesuffix("'s").removesuffix("’s")
        distinct.setdefault(bare.lower(), bare)
    found = [word for known, word in distinct.items() if known and known not in _STOP_WORDS]
    return " ".join(found[:MOST_WORDS]) or plain or " ".join(question.split())


def cut(text: str, longest: int) -> str:
    """Cut `text` to `longest` characters, at the end of a word if possible."""
    if len(text) <= longest:
        return text
    return text[: longest + 1].rpartition(" ")[0].rstrip(" ,;") or text[:longest]
