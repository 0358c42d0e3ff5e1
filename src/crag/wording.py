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
_THANKS = (
    r"(?:(?:ok|okay|great|perfect|no)[\s,.!]+)?(?:(?:many )?thanks|thank you|thx|cheers)"
    r"(?: (?:so much|very much|a lot|a million|again|for (?:your|the|any) (?:help|answer)))*"
)
_HEARD = (
    r"(?:ok|okay|alright|all right|great|perfect|excellent|cool|nice|super|wonderful|awesome|got it"
    r"|i see|understood|good|fine|hm+|(?:that|this|it) (?:helps|helped)(?: a lot)?"
    r"|(?:that|this|it)(?: was| is|'s) (?:(?:very|really|so) )?"
    r"(?:helpful|useful|great|good|perfect|clear|it|all))"
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
    r"[\s,.;!?-]+(?:please|pls|plz|thanks|thank you|thx|cheers|many thanks)"
    r"(?: (?:so much|very much|a lot|in advance|again|for (?:your|the|any) help))*[\s.!]*$",
    re.IGNORECASE,
)


def plainly_asked(question: str) -> str:
    """Return a question without the courtesies around it; any other text as it is.

    Greetings, requests to be told, the words that the documents are to answer, and thanks go, in
    English. What is left begins with a capital letter if the question did, and keeps its mark.
    """
    left = _bare(question)
    if left == question.strip() or len(left.split()) < FEWEST_WORDS:
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


_GREETED: Final = "Hello. Ask me about the documents: I answer from what they say, and cite where."
_THANKED: Final = "You are welcome. Ask me anything else about the documents."
_LEFT: Final = "Goodbye."
_IDLE: Final = "What would you like to know about the documents? Ask me a question."
_SELF: Final = (
    "I answer questions about the documents that were indexed, and cite where the answer stands. "
    "Where they do not answer, I say so. The page lists the documents, and so does `crag list`."
)
_BETWEEN = re.compile(r"[\s.!?,;:…\U00002190-\U00002bff\ufe0f\u200d\U0001f000-\U0001faff()-]+")
"""Marks between sentences, emoticons and emoji."""
_CIVIL: Final = {
    name: re.compile(rf"(?:{words})\b", re.IGNORECASE)
    for name, words in {
        _THANKED: rf"{_THANKS}(?: (?:you|then|everyone|all))?|danke(?: schön)?|vielen dank|merci"
        r"|(?:muchas )?gracias|grazie|obrigad[oa]",
        _LEFT: r"(?:good ?)?bye(?: bye)?|good night|see you(?: (?:later|soon|tomorrow))?|ciao"
        r"|have a (?:nice|good|great) (?:day|evening|night|weekend|one)|tschüss|adiós|au revoir"
        r"|that(?: i|')s (?:all|it)(?: for (?:now|today))?",
        _GREETED: rf"{_GREETING}|hallo|guten (?:tag|morgen)|bonjour|hola|how are you(?: doing)?"
        r"(?: today)?|nice to meet you",
        _SELF: r"(?:so )?(?:who|what)(?:(?: exactly)? are|'re) you|what(?: is|'s) your name"
        r"|are you (?:an? )?(?:real |chat)?(?:bot|robot|human|person|ai|chatgpt|machine|llm)"
        r"|what (?:all )?(?:can|do) you (?:do|answer|know|tell me)(?: for me| about)?"
        r"|what (?:can|may|should|could) i ask(?: you)?(?: about)?|how (?:can|do) you (?:help|work)"
        r"(?: me)?|what questions (?:can|do) (?:you answer|i ask)(?: you)?"
        r"|(?:what|which) (?:documents|docs|files|sources) (?:do|can) you (?:have|know|use|read)"
        r"|(?:(?:can|could) you )?help(?: me)?(?: please)?",
    }.items()
}
_CIVIL_CHARACTERS = 200
"""Longest message that asks nothing; a longer one is a question."""
_REACTION = re.compile(rf"(?:{_HEARD}|yes|yeah|yep|sure|no|nope|never ?mind)\b", re.IGNORECASE)


def civil_reply(message: str, *, follows: bool) -> str:
    """Return a reply to a message that asks nothing of the documents; empty for any other.

    Such are greetings, thanks, farewells, a mark or an emoji alone, what asks who answers, and, if
    the message `follows` others, a reaction such as "ok". A message that says anything besides is a
    question.
    """
    if not message or len(message) > _CIVIL_CHARACTERS:
        return ""
    replies, left = list[str](), message
    while left := left[place.end() :] if (place := _BETWEEN.match(left)) else left:
        said = ((reply, pattern.match(left)) for reply, pattern in _CIVIL.items())
        reply, match = next(((reply, match) for reply, match in said if match), ("", None))
        if match is None and follows:
            reply, match = _IDLE, _REACTION.match(left)
        if match is None or (left[match.end() :] and not _BETWEEN.match(left[match.end() :])):
            return ""
        replies.append(reply)
        left = left[match.end() :]
    return next((reply for reply in (_SELF, _LEFT, _THANKED, _GREETED) if reply in replies), _IDLE)


_OPENS = re.compile(
    r"(?:and|or|but|also|then|so(?! (?:many|much)\b)|else|what about|how about|what if|why not)\b"
    r"|(?:(?:no|nope|sorry|wait)\b[\s,.!:;-]+(?:\w+ ){0,3})?i (?:mean|meant)\b"
    r"|not (?:the|an?|in|for|with|on)\b|no[,:;.]\s",
    re.IGNORECASE,
)
"""How a question begins that goes on from the one before, or corrects it."""
_ALONE = re.compile(
    r"(?:(?:for|since|until|by|from|to|with|in|of|on|at) )?"
    r"(?:why|how|when|where|who|whom|whose|which|what)"
    r"(?: (?:long|much|many|often|far|big|large|fast|soon|late|early|so|come|else|exactly|not))?"
    r"|(?:(?:can|could|would|will) you )?(?:please )?(?:"
    r"(?:(?:show|give|tell) (?:me|us) )?(?:(?:an?|some|any) )?"
    r"(?:more|(?:more )?(?:details?|examples?))"
    r"|go on|continue|elaborate|explain)(?: please)?"
    r"|where exactly|really|are you sure|i (?:don't|do not) understand|what do you mean",
    re.IGNORECASE,
)
"""What is no question without the one before."""
_PREPOSITIONS = (
    r"in|for|with|without|on|at|by|from|to|as|until|since|before|after|per|during|via|under"
)
_PREPOSITION = re.compile(rf"(?:{_PREPOSITIONS})\s", re.IGNORECASE)
_FUNCTION_WORDS = (
    rf"{_PREPOSITIONS}|of|and|or|not|the|an?|any|some|each|every|all|my|our|your|their|his|her|its"
    r"|this|that|these|those|many|much|more|what|which|who|how|when|where|why|is|are|was|were|be|do"
    r"|does|did|has|have|can|could|should|will|would|may|must|i|we|you|he|she|it|they|there"
)
"""Words that describe no noun."""
_DETERMINER = re.compile(r"\A(?:the|(?-i:a)|an|my|our|your|any|some)\s", re.IGNORECASE)
"""What begins a follow-up and is left out, as the question has its own; "A levels" are a name."""
_NAME = re.compile(r"(?<=\s)[A-Z][\w.+#-]*\b(?!['’])(?<!\bI)")
"""A word with a capital letter that does not begin the sentence."""
_BESIDES = re.compile(
    r"(?:[\s,]+(?:then|too|instead|though|as well|please))*[\s.,;!?…]*\Z", re.IGNORECASE
)
"""What ends a follow-up and names nothing."""
_ASKING = re.compile(
    r"\b(?:why|how|when|where|who|which|what|is|are|do|does|did|can|could|should|will|would|may"
    r"|must|has|have|tell|show|explain|find|list)\b",
    re.IGNORECASE,
)
_EMPTY = frozenset(
    """
    a am an any anybody anyone are be can could did do does doing else has have help here how i idea
    ideas is may me missing must need not now please really should somebody someone still the to us
    was we what when where which who why will with would wrong you
    """.split()  # noqa: SIM905 - reads better
)
"""Words that say nothing alone, as in "do I have to?" and "could anyone help me?"."""
_FRAGMENT = 5
"""Most words of a follow-up such as "in German?" or "for a single request?"."""
_OF_ITSELF = re.compile(
    r"\b(?:(?:is|was) it (?:\w+ )?(?:possible|necessary|safe|ok|okay|better|best|allowed|needed"
    r"|required|recommended|wise|worth) (?:to|if|that|for)|(?:does|will) it take (?:to|for|until)"
    r"|(?:is|are|was|were) there|there (?:is|are|was|were)|instead of|(?:each|one|every) other)\b",
    re.IGNORECASE,
)
"""Where "it", "there", "instead" and "other" stand for nothing that was said before."""
_STANDS_FOR = re.compile(
    r"\b(?:it|its|they|them|their|this|these|those|he|him|his|she|her|hers|there|ones|others"
    r"|instead)\b"
    r"|(?:\A|\b(?:is|are|was|were|do|does|did|can|could|should|would|will|if|of|for|with|to|in|on|by"
    r"|from|about|like|than|after|before|say|says|said|mean|use|explain)\s)that\b|\bthat\W*\Z"
    r"|\bone(?=\W*\Z|\s(?:is|are|was|does|do|can|should|would|has)\b)"
    r"|\bthe same(?=\W*\Z|\s(?:for|true|thing|way|with|in|as)\b)|\Asame\b"
    r"|\b(?:an)?other (?:ones?|ways?|options?|possibilit(?:y|ies))\b|\btoo\W*\Z",
    re.IGNORECASE,
)
"""Words that stand for something that was said before."""
_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PIECE = re.compile(r"(?<=[^\d][.!?])\s+|\n\s*\n|\n(?![ \t]*[a-z(])")
"""Between sentences and lines; a line that goes on in small letters is wrapped."""
_REQUESTS = re.compile(
    rf"(?:(?:\d+[.)]|[-*•])\s*)?(?:please )?"
    rf"(?:{_REQUEST}|{_TELL}|list|describe|give|compare|define)\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:[A-Z]|\d+)[.:)]\s|[-*•]\s")
"""How a line of a list begins, which belongs to the question above it."""
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_SHORT_MESSAGE = 30
"""Most words of a message that is a question as a whole."""
_FEWEST_OF_SENTENCE = 4
_CARRIED = 300
"""Most characters of an earlier question that are put before a follow-up."""


def with_subject(question: str, before: Sequence[str]) -> str:
    """Complete a follow-up by the question that it leans on; any other comes back as it is.

    A follow-up begins with a word such as "and", corrects ("no, I meant"), is a question word or a
    few words with a preposition alone, or says "it" or "she", in English. `before` has the earlier
    questions of the chat, the last one last; it leans on the last that stands alone. One that only
    names something ("and sick leave?") is that question about it, if it asks about something alike
    ("How much parental leave do I get?"); the question stands in front of any other.
    """
    if not _leans(question):
        return question
    asking = [asked for asked in before if not civil_reply(asked, follows=True)]
    earlier = [one for asked in reversed(asking) for one in reversed(_asked_in(asked))]
    whole = (_subject(asked) for asked in earlier if not _leans(asked))
    opened = (_subject(asked) for asked in earlier if not _OPENS.match(asked))
    subject = next(whole, "") or next(opened, "")
    if not 0 < len(subject) <= _CARRIED:
        return question
    named = _BESIDES.sub("", named_instead(question)).strip()
    return _asked_of(named, subject) or f"{subject} {_bare(question) or question}"


def question_in(message: str) -> str:
    """Return what a message with code or of more than 30 words asks; any other text as it is.

    That is its questions and requests, with what goes on from them. If none of them stands alone,
    such as "What can I do?" below an error, it is the first with the sentence before it. A
    retriever and a reader lose a question among much else, most of all at the end.
    """
    has_code = _CODE.search(message) is not None
    if len(message.split()) <= _SHORT_MESSAGE and not has_code:
        return message
    text = _QUOTED.sub("", _CODE.sub("\n\n", message))
    pieces = [one for piece in _PIECE.split(text) if (one := " ".join(piece.split()))]
    asking: list[int] = []
    for place, one in enumerate(pieces):
        is_asked = one.endswith("?") or _REQUESTS.match(one)
        if is_asked or (asking[-1:] == [place - 1] and (_goes_on(_bare(one)) or _ITEM.match(one))):
            asking.append(place)
    if len(asking) == len(pieces) and not has_code:
        return message
    if not any(_stands_alone(pieces[place]) for place in asking):
        if not asking or asking[0] == 0 or has_code:
            return message
        before = pieces[asking[0] - 1]
        asking = [asking[0] - 1, asking[0]] if len(before.split()) >= _FEWEST_OF_SENTENCE else []
    return " ".join(pieces[place] for place in asking) or message


def _stands_alone(asked: str) -> bool:
    return not _leans(asked) and len(_told_by(_bare(asked))) >= FEWEST_WORDS


def _leans(asked: str) -> bool:
    """Say whether the first question of a message cannot be understood without what was before.

    What several lines say, such as code above a question, is what their words stand for.
    """
    text = _bare(asked) or asked
    line, *more = text.splitlines() or [""]
    sentences = _SENTENCE.split(line)
    first = sentences[0] if more else next((one for one in sentences if "?" in one), sentences[0])
    return (
        _OPENS.match(line) is not None
        or _goes_on(first)
        or not _told_by(first)
        or _STANDS_FOR.search(_OF_ITSELF.sub("", first)) is not None
    )


def _goes_on(asked: str) -> bool:
    is_alone = _ALONE.fullmatch(asked.strip(" .,;:!?…-")) is not None
    return is_alone or _OPENS.match(asked) is not None or _is_fragment(asked)


def _told_by(text: str) -> set[str]:
    return {*re.findall(r"\w+", text.lower())} - _EMPTY


def _is_fragment(asked: str) -> bool:
    is_asked = _ASKING.search(asked)
    return bool(_PREPOSITION.match(asked)) and not is_asked and len(asked.split()) <= _FRAGMENT


def named_instead(follow_up: str) -> str:
    """Return what a follow-up names without a question, such as "in Rome" of "and in Rome?".

    Empty for any other: one that asks something of its own, or names nothing.
    """
    text = _bare(follow_up)
    opening = _OPENS.match(text)
    named = text[opening.end() :] if opening else text if _is_fragment(text) else ""
    return "" if _ASKING.search(named) else named


def _asked_of(named: str, subject: str) -> str:
    """Return a question about what is named in place of what is alike; empty where nothing is.

    Alike are what begins with the same preposition, what ends with the same noun, and one name
    that is the only one of the question.
    """
    *modifiers, noun = named.split() or [""]
    if _PREPOSITION.match(named):
        places = _preposed(modifiers[0]).finditer(subject)
    elif modifiers:
        named = _DETERMINER.sub("", named)
        places = _modified(noun, len(named.split()) - 1).finditer(subject)
    else:
        names = list(_NAME.finditer(subject))
        places = iter(names if _NAME.search(f" {named}") and len(names) == 1 else ())
    *_, place = None, *places
    return f"{subject[: place.start()]}{named}{subject[place.end() :]}" if place else ""


def _preposed(preposition: str) -> re.Pattern[str]:
    """Find a preposition with what it stands before."""
    end = rf"(?=\W*\Z|[,;:.?!]| (?:of|that|if|when|{_PREPOSITIONS})\b)"
    what = rf"(?!(?:{_PREPOSITIONS})\b)(?:(?-i:[A-Z])[\w-]*(?: (?-i:[A-Z])[\w-]*)*|\w.*?{end})"
    return re.compile(rf"\b{preposition} {what}", re.IGNORECASE)


def _modified(noun: str, most: int) -> re.Pattern[str]:
    """Find a noun with at most `most` words before it that may describe it: no verb, no article."""
    stem = re.escape(noun.removesuffix("s"))
    describes = rf"(?<!\bto )(?<!\bI )(?<!\bwe )(?<!\byou )(?!(?:{_FUNCTION_WORDS})\b)[\w-]+ "
    return re.compile(rf"\b(?:{describes}){{0,{most}}}{stem}s?\b(?!['’])", re.IGNORECASE)


def _asked_in(message: str) -> list[str]:
    """Return the questions of a message that has several or is long, any other as it is."""
    questions = [one for one in _SENTENCE.split(_CODE.sub(" ", message)) if one.endswith("?")]
    several = len(questions) > 1 or len(message) > _CARRIED
    return questions if questions and several else [message]


def _subject(asked: str) -> str:
    """Return what was asked in one line, without code."""
    return " ".join(plainly_asked(_CODE.sub(" ", asked)).split())
