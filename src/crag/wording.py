"""How people put questions: what they write around one, and what they leave out of a follow-up.

A retriever compares all words, and a reader takes a question as it is put: with "Could you tell me"
in front of it, the same documents answer fewer questions. Rules are for English, but for "and".
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
    r"(?:(?:ok|okay|great|no)[\s,.!]+)?(?:(?:many )?thanks|thank you|thx)"
    r"(?: (?:so much|very much|a lot|in advance|again|for (?:your|the) (?:help|answer)))?"
)
_HEARD = (
    r"(?:ok|okay|great|perfect|cool|nice|super|got it|i see|good|sure"
    r"|(?:that|this|it)(?: was| is|'s) (?:(?:very|really) )?(?:helpful|useful|great|good|clear))"
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


_ASK_ME: Final = "Ask me about the documents: I answer from what they say, and cite where."
_WELCOME: Final = "You are welcome. Ask me anything else about the documents."
_CIVIL = (
    rf"{_GREETING}|{_THANKS}|how are you(?: today)?|(?:who|what) are you|help"
    r"|what can (?:you do|i ask)|(?:good ?)?bye"
)
_REACTION = rf"{_HEARD}|yes|no"
_MARKS = re.compile(r"[\s.!?,;:…\U00002190-\U00002bff\ufe0f\u200d\U0001f000-\U0001faff()-]+")
"""Marks between words, emoticons and emoji."""
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
    known = f"{_CIVIL}|{_REACTION}" if follows else _CIVIL
    if said and not re.fullmatch(rf"(?:{known})(?: (?:{known}))*", said, re.IGNORECASE):
        return ""
    return _WELCOME if re.search(_THANKS, said, re.IGNORECASE) else _ASK_ME


_OPENS = re.compile(
    r"¿?(?:(?:and|or|but|also|then|what about|how about|what if|und|was ist mit|et|mais|y|pero)\b"
    r"|(?:no[,:;.]\s+)?i meant?\b|no[,:;.]\s|same (?:question|thing|for)\b"
    r"|(?:more(?: details?| info)?|are you sure)\W*\Z"
    r"|(?:how|why|when|where|who|what|which|since|until|for|in|on|at|with|by|such|anything|really"
    r"|warum|wann|wo|wie|wer|pourquoi|quand|por qué|cuándo)\b(?: [\w'’-]+)?\s*\?\Z)",
    re.IGNORECASE,
)
"""How a question begins that goes on from the one before, or corrects it, or the whole of it."""
_PRONOUN = re.compile(
    r"\b(?:it(?! (?:\w+ )?(?:possible|necessary|take|better|best|safe|okay|ok|allowed|worth)\b)|its"
    r"|they|them|their|th(?:is|ese)(?! (?:company|document\w*|guide|handbook|\w+['’]s)\b)|those"
    r"|he|him|his|she|her|(?:can|did|does|explain|is|was|will|with|of|for) that"
    r"|(?:which|first|second|third|last|next|other) ones?)\b",
    re.IGNORECASE,
)
"""Words that stand for what was said before."""
_NAME = re.compile(r"(?<=\s)(?!I\b)[A-Z][\w.+#-]*\b(?!['’])")
"""A word with a capital letter that does not begin the sentence."""
_MANY = r"(?<!who )(?<!what )\b(?!does|was|has|this)[a-z]{3,}s "
_NOUN = re.compile(rf"\b(?:the|an?|my|our|your) \w|{_NAME.pattern}|{_MANY}")
"""Before a pronoun, what it may stand for."""
_ARTICLE = re.compile(r"\A(?:the|(?-i:a)|an|my|our|your|any|some) ", re.IGNORECASE)
"""Before a noun; "A levels" are a name."""
_BEFORE_NOUN = "the|an?|my|our|your|any|some|of|for|on|in|with|much|many|is|are"


def with_subject(question: str, before: Sequence[str]) -> str:
    """Complete a follow-up by the question that it leans on; any other comes back as it is.

    A follow-up begins with words such as "and" or "what about", has a pronoun in its first
    sentence, or asks in a word or two ("how long?"). `before` has the earlier questions, the last
    one last; it leans on the last that stands alone. Where it only names something ("and sick
    leave?"), that takes the place of what is alike there ("How much parental leave do I get?");
    else the question stands in front.
    """
    asked = _bare(question) or question
    asking = (one for one in reversed(before) if not civil_reply(one, follows=True))
    subject = next((one for one in map(plainly_asked, asking) if not _leans(one)), "")
    if not (subject and _leans(asked)):
        return question
    return _asked_of(_named_instead(asked), subject) or f"{subject} {asked}"


def _leans(asked: str) -> bool:
    """Say whether a question of one line cannot be understood without the one before."""
    first, *_ = re.split(r"(?<=[.!?])\s+", asked)
    points_back = (it := _PRONOUN.search(first)) and not _NOUN.search(first[: it.start()])
    return "\n" not in asked and bool(_OPENS.match(asked) or points_back)


def _named_instead(asked: str) -> str:
    """Return what a follow-up names without a question, such as "in Rome" of "and in Rome?".

    Empty for any other: one that asks something of its own, or names nothing.
    """
    opening = _OPENS.match(asked)
    if opening is None or re.match(_ASKS, asked[opening.end() :], re.IGNORECASE):
        return ""
    named = asked[opening.end() :].rstrip(" .,;!?…")
    return re.sub(r" (?:then|too|instead|as well)\Z", "", named).strip()


def _asked_of(named: str, subject: str) -> str:
    """Return a question about what is named in place of what is alike; empty where nothing is.

    Alike are a name, where there is one of them alone, and what ends with the same noun.
    """
    pattern = ""
    if alone := re.fullmatch(r"(?:([a-z]+) )?([A-Z][\w.+#-]*)", named):
        named, pattern = alone[2], rf"\b{alone[1] or ''}\b.({_NAME.pattern})"
    elif named:
        *describing, noun = (named := _ARTICLE.sub("", named)).split()
        described = rf"(?:[\w-]+ ){{0,{len(describing)}}}{re.escape(noun.removesuffix('s'))}s?\b"
        pattern = rf"(?i:\b(?:{_BEFORE_NOUN}) ({described}))"
    alike = list(re.finditer(pattern, subject)) if named else []
    place = alike[0].span(1) if len(alike) == 1 else None
    return f"{subject[: place[0]]}{named}{subject[place[1] :]}" if place else ""
