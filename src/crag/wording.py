"""How people put questions: what they write around one, and what they leave out of a follow-up.

A retriever compares all words, and a reader takes a question as it is put: with "Could you tell me"
in front of it, the same documents answer fewer questions. All rules are for English.
"""

import re
from collections.abc import Sequence
from typing import Final

_GREETING = (
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+)(?: (?:there|all|everyone|team))?"
)
_TELL = r"(?:tell|explain to|show|remind|let|help) (?:me|us)(?: know| understand| find out)?"
_REQUEST = (
    r"(?:(?:(?:can|could|would|will) (?:you|any(?:one|body)|some(?:one|body)) )?"
    rf"(?:please |kindly )?{_TELL}"
    r"|i(?:'d| would)? (?:like|love|want|need|wish) to (?:know|ask|learn|find out|understand)"
    r"|i(?:'m| am| was) (?:(?:just )?(?:wondering|curious)"
    r"|trying to (?:find out|understand|figure out|learn))"
    r"|(?:do you|does (?:any|some)(?:one|body)) (?:happen to )?know"
    r"|(?:any|no) idea"
    r"|(?:just )?(?:(?:a|one|my|another) (?:quick |short )?|quick )question(?: is)?)"
    r"(?: about(?= (?:what|how|why|when|where|which|who)\b))?(?:[\s,:;-]+(?:if|whether))?"
)
_SOURCE = (
    r"(?:in|from|according to|based on|as per|per|using) (?:the|this|these|those|your|our|my) "
    r"(?:documentation|docs?|documents?|manual|handbook|guide|text|pages?|context|"
    r"knowledge base|files?|passages?)(?: (?:above|below|here|provided|given))?"
)
_THANKS = (
    r"(?:(?:ok|okay|great|perfect|no)[\s,.!]+)?(?:(?:many )?thanks|thank you|thx|cheers)"
    r"(?: (?:so much|very much|a lot|a million|in advance|again"
    r"|for (?:your|the|any) (?:help|answer)))*"
)
_HEARD = (
    r"(?:ok|okay|alright|all right|great|perfect|excellent|cool|nice|super|wonderful|got it|i see"
    r"|understood|good|fine|(?:that|this|it)(?: was| is|'s) (?:(?:very|really|so) )?"
    r"(?:helpful|useful|great|good|perfect|clear))"
)
_PAUSE = r"\s*[,:;.!-]+\s*"
_ASKS = (
    r"\s+(?=(?:how|what|whats|when|where|which|who|why|can|could|do|does|is|are|may|please|i|and"
    r"|so|but|then)\b)"
)
_BEFORE = re.compile(
    rf"\s*(?:{_GREETING}(?:{_PAUSE}|{_ASKS})|(?:question|q){_PAUSE}"
    rf"|(?:{_THANKS}|{_HEARD})(?:\s*[,;.!]+\s+|\s+-+\s+)|(?:{_THANKS}|ok|okay){_ASKS}"
    rf"|(?:please|pls|kindly|{_REQUEST}|{_SOURCE})(?:{_PAUSE}|\s+))",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"(?<![\s,.;!?-])[\s,.;!?-]+(?:please|pls|plz|{_THANKS})[\s.!]*$", re.IGNORECASE
)
_FEWEST_WORDS = 2
"""Of what is left; a shorter rest is no question, and the whole is kept."""


def plainly_asked(question: str) -> str:
    """Return a question without the courtesies around it; any other text as it is.

    Greetings, requests to be told, the words that the documents are to answer, and thanks go. What
    is left begins with a capital letter if the question did, and keeps its mark.
    """
    left = _bare(question)
    if left == question.strip() or len(left.split()) < _FEWEST_WORDS:
        return question
    return left[0].upper() + left[1:] if question.strip()[0].isupper() else left


def _bare(question: str) -> str:
    left = question.strip()
    while before := _BEFORE.match(left):
        left = left[before.end() :]
    while after := _AFTER.search(left):
        mark = "?" if "?" in after[0] else ""
        left = left[: after.start()] + mark
    return left


_IDLE: Final = "What would you like to know about the documents? Ask me a question."
_CIVIL: Final = {
    "I answer questions about the documents that were indexed, and cite where the answer stands. "
    "Where they do not answer, I say so.": r"(?:who|what) are you|what can (?:you do|i ask)|help",
    "Goodbye.": r"(?:good ?)?bye|good night|see you(?: later)?|that's (?:all|it)",
    "You are welcome. Ask me anything else about the documents.": _THANKS,
    "Hello. Ask me about the documents: I answer from what they say, and cite where.":
        rf"{_GREETING}|how are you(?: today)?",
}  # fmt: skip
"""What is said to words that ask nothing; the first of several."""
_MARKS = re.compile(r"[\s.!?,;:…\U00002190-\U00002bff\ufe0f\u200d\U0001f000-\U0001faff()-]+")
"""Marks between words, emoticons and emoji."""
_REACTION = rf"{_HEARD}|yes|yeah|sure|no"
_LONGEST_CIVIL = 200


def civil_reply(message: str, *, follows: bool) -> str:
    """Return a reply to a message that asks nothing of the documents; empty for any other.

    Such are greetings, thanks, farewells, a mark or an emoji alone, what asks who answers, and, if
    the message `follows` others, a reaction such as "ok". A message that says anything besides is a
    question.
    """
    if not 0 < len(message) <= _LONGEST_CIVIL:
        return ""
    said = " ".join(_MARKS.sub(" ", message).split())
    known = "|".join([*_CIVIL.values(), *([_REACTION] if follows else [])])
    if said and not re.fullmatch(rf"(?:{known})(?: (?:{known}))*", said, re.IGNORECASE):
        return ""
    found = (
        reply
        for reply, words in _CIVIL.items()
        if re.search(rf"\b(?:{words})\b", said, re.IGNORECASE)
    )
    return next(found, _IDLE)


_OPENS = re.compile(
    r"(?:and|or|but|also|then|what about|how about|what if)\b"
    r"|(?:no[,:;.]\s+)?i meant?\b|no[,:;.]\s",
    re.IGNORECASE,
)
"""How a question begins that goes on from the one before, or corrects it."""
_PRONOUN = re.compile(
    r"\b(?:it(?! (?:\w+ )?(?:possible|necessary|take|better|best|safe|okay|ok|allowed|worth)\b)|its"
    r"|they|them|their|this|these|those|he|him|his|she|her)\b",
    re.IGNORECASE,
)
"""Words that stand for what was said before."""
_PREPOSITIONS = "in|for|with|without|on|at|by|from|to|until|since|before|after|per|during|under"
_FRAGMENT = re.compile(
    r"(?:why|how|when|where|who|which|what)(?: (?:long|much|many|often|exactly|else|so|not))?"
    r"|(?:more|(?:more )?(?:details|examples)|go on|explain)"
    rf"|(?:{_PREPOSITIONS})(?! (?:what|which|whose|whom|how)\b)(?: [^\s?]+){{1,4}}",
    re.IGNORECASE,
)
"""What is no question without the one before: "why", "how long", "in German"."""
_ASKING = re.compile(
    r"\b(?:why|how|when|where|who|which|what|is|are|do|does|did|can|could|should|will|would|may"
    r"|must|has|have)\b",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"\A(?:the|(?-i:a)|an|my|our|your|any|some)\s", re.IGNORECASE)
"""What begins a follow-up and is left out, as the question has its own; "A levels" are a name."""
_NAME = re.compile(r"(?<=\s)(?!I\b)[A-Z][\w.+#-]*\b(?!['’])")
"""A word with a capital letter that does not begin the sentence."""
_FUNCTION_WORDS = (
    rf"{_PREPOSITIONS}|of|and|or|not|the|an?|any|some|each|every|all|my|our|your|their|his|her|its"
    r"|this|that|many|much|more|what|which|who|how|when|where|why|is|are|was|were|be|do|does|did"
    r"|has|have|can|could|should|will|would|may|must|i|we|you|he|she|it|they|there"
)
"""Words that describe no noun."""
_ITEM = re.compile(r"(?:[A-Z]|\d+)[.:)]\s|[-*•]\s")
"""How a line of a list begins, which belongs to the question above it."""
_LONGEST_CARRIED = 300
"""Characters of an earlier question that a follow-up is completed by."""


def with_subject(question: str, before: Sequence[str]) -> str:
    """Complete a follow-up by the question that it leans on; any other comes back as it is.

    A follow-up begins with words such as "and" or "what about", has a pronoun in its first
    sentence, or is a few words alone ("why?", "in German?"). `before` has the earlier questions of
    the chat, the last one last; it leans on the last that stands alone. Where it only names
    something ("and sick leave?"), that takes the place of what is alike there ("How much parental
    leave do I get?"); else the question stands in front of it.
    """
    asked = _bare(question) or question
    if not _leans(asked):
        return question
    asking = (one for one in reversed(before) if not civil_reply(one, follows=True))
    earlier = (plainly_asked(" ".join(question_in(one).split())) for one in asking)
    subject = next((one for one in earlier if not _leans(one)), "")
    if not 0 < len(subject) <= _LONGEST_CARRIED:
        return question
    return _asked_of(named_instead(question), subject) or f"{subject} {asked}"


def _leans(asked: str) -> bool:
    """Say whether a question of one line cannot be understood without the one before."""
    first, *_ = re.split(r"(?<=[.!?])\s+", asked)
    fragment = _FRAGMENT.fullmatch(asked.strip(" .,;:!?…-"))
    leans = _OPENS.match(asked) or _PRONOUN.search(first) or (fragment and "," not in asked)
    return bool(leans) and "\n" not in asked


def named_instead(follow_up: str) -> str:
    """Return what a follow-up names without a question, such as "in Rome" of "and in Rome?".

    Empty for any other: one that asks something of its own, or names nothing.
    """
    text = _bare(follow_up)
    opening = _OPENS.match(text)
    if not opening and not _FRAGMENT.fullmatch(text.rstrip("?")):
        return ""
    named = text[opening.end() :] if opening else text
    named = re.sub(r"(?: (?:then|too|instead|as well))?[\s.,;!?…]*\Z", "", named).strip()
    return "" if _ASKING.search(named) else named


def _asked_of(named: str, subject: str) -> str:
    """Return a question about what is named in place of what is alike; empty where nothing is.

    Alike are what follows the same preposition, what ends with the same noun, and one name that is
    the only one of the question.
    """
    first, *others = named.split() or [""]
    if re.fullmatch(_PREPOSITIONS, first, re.IGNORECASE):
        ends = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*|(?:\w+ )?\w+(?=\W*\Z)"
        places = re.finditer(rf"\b(?i:{first}) (?:{ends})", subject)
    elif others:
        named = _DETERMINER.sub("", named)
        places = _modified(others[-1], len(named.split()) - 1).finditer(subject)
    else:
        names = list(_NAME.finditer(subject))
        places = iter(names if _NAME.search(f" {named}") and len(names) == 1 else ())
    *_, place = None, *places
    return f"{subject[: place.start()]}{named}{subject[place.end() :]}" if place else ""


def _modified(noun: str, most: int) -> re.Pattern[str]:
    """Find a noun with at most `most` words before it that may describe it: no verb, no article."""
    stem = re.escape(noun.removesuffix("s"))
    describes = rf"(?<!\bto )(?<!\bI )(?<!\bwe )(?<!\byou )(?!(?:{_FUNCTION_WORDS})\b)[\w-]+ "
    return re.compile(rf"\b(?:{describes}){{0,{most}}}{stem}s?\b(?!['’])", re.IGNORECASE)


_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_SHORT_MESSAGE = 30
"""Most words of a message that is a question as a whole."""
_SHORT_QUESTION = 4
"""Most words of a question such as "What can I do?", which asks nothing without what is before."""


def question_in(message: str) -> str:
    """Return the questions of a message with code or of more than 30 words; any other as it is.

    A retriever and a reader lose a question among much else, most of all at the end. Where its
    questions are short, or have a pronoun for what the rest says, the message stays whole.
    """
    if len(message.split()) <= _SHORT_MESSAGE and not _CODE.search(message):
        return message
    text = re.sub(r"\n(?![ \t]*[a-z(])", "\n\n", _CODE.sub("\n\n", message))
    asking: list[str] = []
    goes_on = False
    for piece in re.split(r"(?<=[^\d][.!?])\s+|\n\s*\n", text):
        one = " ".join(piece.split())
        is_asked = one.endswith("?") and len(_bare(one).split()) > 1
        goes_on = is_asked or (goes_on and _ITEM.match(one) is not None)
        asking += [one] if goes_on else []
    asked = " ".join(asking)
    return message if _leans(asked) or len(asked.split()) <= _SHORT_QUESTION else asked
