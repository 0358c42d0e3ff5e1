"""How people put questions: what they write around one, and what they leave out of a follow-up.

A retriever compares all words, and a reader takes a question as it is put: with "Could you tell me"
in front of it, the same documents answer fewer questions.
"""

import re
from collections.abc import Sequence
from typing import Final

FEWEST_WORDS: Final = 2
"""Of what is left; a shorter rest is no question, and the whole is kept."""

_GREETING = (
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+)(?: (?:there|all|everyone|team))?"
)
_TELL = r"(?:tell|explain to|show|remind|let|help)"
_REQUEST = (
    r"(?:(?:can|could|would|will) (?:you|any(?:one|body)|some(?:one|body)) (?:please |kindly )?"
    rf"{_TELL} (?:me|us)(?: know| understand| find out)?"
    rf"|{_TELL} (?:me|us)(?: know)?"
    r"|i(?:'d| would) (?:like|love|need) to (?:know|ask|learn|find out|understand)"
    r"|i (?:want|need|wish) to (?:know|ask|learn|find out|understand)"
    r"|i(?:'m| am| was) (?:just )?(?:wondering|curious)"
    r"|i(?:'m| am| was) trying to (?:find out|understand|figure out|learn)"
    r"|(?:do you|does (?:any|some)(?:one|body)) (?:happen to )?know"
    r"|(?:any|no) idea|(?:just )?(?:a|one|my|another) (?:quick |short )?question(?: is)?"
    r"|quick question)(?: about(?= (?:what|how|why|when|where|which|who)\b))?"
    r"(?:[\s,:;-]+(?:if|whether))?"
)
_SOURCE = (
    r"(?:in|from|according to|based on|as per|per|using) (?:the|this|these|those|your|our|my) "
    r"(?:documentation|docs?|documents?|manual|handbook|guide|text|pages?|context|"
    r"knowledge base|files?|passages?)(?: (?:above|below|here|provided|given))?"
)
_PAUSE = r"\s*[,:;.!-]+\s*"
_ASKS = (
    r"\s+(?=(?:how|what|whats|when|where|which|who|why|can|could|do|does|is|are|may|please|i)\b)"
)
_BEFORE = re.compile(
    rf"\s*(?:{_GREETING}(?:{_PAUSE}|{_ASKS})|(?:question|q){_PAUSE}"
    rf"|(?:please|pls|kindly|{_REQUEST}|{_SOURCE})(?:{_PAUSE}|\s+))",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"[\s,.;!?-]+(?:please|pls|plz|thanks|thank you|thx|cheers|many thanks)"
    r"(?: (?:so much|very much|a lot|in advance|again|for (?:your|the|any) help))*[\s.!]*$",
    re.IGNORECASE,
)


def plainly_asked(question: str) -> str:
    """Return a question without the courtesies around it; any other text as it is.

    Greetings, requests to be told, the words that the documents are to answer, and thanks go, in
    English. What is left begins with a capital letter if the question did, and keeps its mark.
    """
    left = question.strip()
    while before := _BEFORE.match(left):
        left = left[before.end() :]
    while after := _AFTER.search(left):
        mark = "?" if "?" in after[0] else ""
        left = left[: after.start()] + mark
    if left == question.strip() or len(left.split()) < FEWEST_WORDS:
        return question
    return left[0].upper() + left[1:] if question.strip()[0].isupper() else left


_LEANS = re.compile(
    r"\s*(?:and|or|but|also|then|so|what about|how about|what if|why not|else)\b"
    r"|\A\W*(?:why|how|when|where|who|which|what)\W*\Z"
    r"|\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|hers|there|one|ones|"
    r"same|other|others|another|instead|too)\b",
    re.IGNORECASE,
)
_OPENS = re.compile(r"\s*(?:and|or|but|also|then|so|what about|how about)\b", re.IGNORECASE)
_CARRIED = 300
"""Most characters of an earlier question that are put before a follow-up."""


def with_subject(question: str, before: Sequence[str]) -> str:
    """Put the question that a follow-up leans on in front of it; any other comes back as it is.

    A follow-up begins with a word such as "and", says "it" or "she", or is a question word alone,
    in English. `before` has the earlier questions of the chat, the last one last; it leans on the
    last that stands alone.
    """
    if not _LEANS.search(question):
        return question
    for earlier in reversed(before):
        subject = plainly_asked(" ".join(earlier.split()))
        if subject and not _OPENS.match(subject) and len(subject) <= _CARRIED:
            return f"{subject} {question}"
    return question
