"""Answers that say nothing: citations without a word, the question again, a promise not kept."""

import re

from crag.answering.citations import without_citations
from crag.text.marks import in_our_format
from crag.text.words import words

_WORDLESS = re.compile(
    r"</?passage\b[^<>]{0,200}>|\b(?:numbers?|passages?|sources?)[\s:=#\"]{0,9}\d{1,4}\b|"
    r"[(#]\d{1,4}\b|\b(?:and|passages?|sources?|citations?)\b|[\W_]",
    re.IGNORECASE,
)
"""What an answer without words may consist of, besides citations."""
_REFERENCE = re.compile(
    r"\b(?:passages?|sources?)(?:\s{1,3}numbers?)?[\s:=#\"]{0,9}\d{1,4}\b\"?", re.IGNORECASE
)
"""A citation in words, as in: listed in passage number 2."""
_SENTENCE_END = re.compile(r"[.?!]\s|\n")
_SIGN = re.compile(r"[^\w\s.,;:!?()\[\]'\"‘’“”]")
"""Neither a word nor punctuation: an operator, say, may be the answer."""
_WHAT = re.compile(r"\b(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
_WHETHER = re.compile(
    r"(?:^|[.?!,;:\n])\s*(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|"
    r"was|were|will|would)\b|\b(?:if|or|whether)\b",
    re.IGNORECASE,
)
_IDLE = """
a an and are as at be been by can do for from have in is it its of that the there their these they
this those to was were will with you your
"""
"""Words that tell nothing where the question lacks them."""
_POINTING = "contain describe document find follow give list mention number provide say show state"
"""Words that tell nothing beside a reference; without one they may be the answer, as in: a list."""


def is_wordless(answer: str) -> bool:
    """Return whether an answer consists of citations, marks and punctuation only, without code."""
    said = without_citations(answer)
    return "`" not in said and not _WORDLESS.sub("", said)


def why_empty(question: str, answer: str) -> str:
    """Return what is wrong with an answer that says nothing, and "" for one that says something.

    Besides an answer without words these are one that only says the question again ("The
    ingredients are listed in passage 2") and one that ends where it should begin ("Use this
    command:"). Whether words are only the question's can be told of English questions that ask
    what, who, how and the like; of others, and of those with alternatives, it is not asked.
    """
    if is_wordless(answer):
        return "wrote no words"
    said = without_citations(in_our_format(answer)).rstrip()
    if said.endswith(":"):
        return "announced an answer and gave none"
    asks_what = _WHAT.search(question) and not _WHETHER.search(question)
    if asks_what and _repeats(said, question):
        return "only repeated the question"
    return ""


def _repeats(answer: str, question: str) -> bool:
    """Return whether each sentence has words of the question alone, in their order.

    In another order they may choose among what the question names.
    """
    answer, references = _REFERENCE.subn(" ", answer)
    if not {*_SIGN.findall(answer)} <= {*_SIGN.findall(question)}:
        return False
    idle, asked = {*words(f"{_IDLE} {_POINTING if references else ''}")}, [*words(question)]
    for sentence in _SENTENCE_END.split(answer):
        following = iter(asked)
        # Each word is looked for behind the one before it.
        if not all(word in following for word in words(sentence) if word not in idle):
            return False
    return True
