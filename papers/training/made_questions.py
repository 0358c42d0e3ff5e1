"""Questions made of an index by rule, without a model: of its headings and first sentences.

They repeat the words of the documents, so that they are easier than what people ask. What is known
of them without labels is where they come from: the section that a question was made of answers it,
a search that leaves the section out finds no answer (near), and an index about other things has
none either (far).
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from crag.index import DocumentIndex
from crag.text.language import ENGLISH, language_of
from crag.text.sentences import sentences_of

Kind = Literal["answered", "near", "far"]
_BENEATH = " > "
"""Between the headings of a chunk's `section`."""
_SHORTEST_HEADING, _LONGEST_HEADING = 2, 9
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 6, 45
"""Words of what questions are made of."""
_HELD = 0.8
"""Share of a sentence's words that a text which holds it has; markup and cuts take the others."""
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*[.)]?|[A-Z][.)])\s+")
_PROSE = re.compile(r"[^\W_]|`")
"""What a paragraph begins with that is no list, table, quotation or comment."""
_ASKING = re.compile(
    r"(?:how|what|when|where|which|who|why|can|do|does|is|are|should) ", re.IGNORECASE
)
_SAYS = re.compile(
    r"(?:add|allow|apply|ask|avoid|book|build|call|cancel|change|check|choose|claim|configure|"
    r"connect|control|copy|create|customize|debug|define|delete|deploy|describe|disable|edit|"
    r"enable|export|extend|find|fix|format|get|handle|ignore|import|improve|include|install|list|"
    r"load|log|make|manage|migrate|mock|move|open|override|parse|pass|prepare|prevent|print|"
    r"publish|read|release|remove|rename|replace|report|request|reset|restart|return|review|"
    r"rotate|run|save|schedule|search|send|serve|set|share|show|start|stop|store|submit|test|"
    r"track|update|upgrade|upload|use|validate|view|wrap|write) ",
    re.IGNORECASE,
)
"""How a heading begins that says what to do."""
_NO_SUBJECT = (
    r"(?:this|it|that|there|here|these|those|they|you|we|he|she|i|what|which|who|if|when|while|"
    r"where|to|as|in|on|for|at|by|with|from|after|before|because|since|so|then|also|note|however|"
    r"see)\b"
)
_SUBJECT = rf"(?P<asked>(?!{_NO_SUBJECT})[^\W_][\w`'’./-]*(?: [\w`'’./-]+){{0,6}}?)"
_DO = r"(?P<asked>[a-z][^,;:.]{8,80}?)"
_RULES = [
    (re.compile(pattern, re.IGNORECASE), question)
    for pattern, question in (
        (rf"to {_DO}, ", "How do I {asked}?"),
        (rf"if you (?:want|need|wish|would like) to {_DO}, ", "How do I {asked}?"),
        (rf"(?:you|we) can {_DO} (?:by|with|using|through) ", "How can I {asked}?"),
        (rf"use [^,;:]{{1,60}}? to {_DO}[,;:.]", "How do I {asked}?"),
        (rf"(?:if|when) {_DO}, ", "What happens when {asked}?"),
        (rf"{_SUBJECT} is (?!\w+ing\b)", "What is {asked}?"),
        (rf"{_SUBJECT} are (?!\w+ing\b)", "What are {asked}?"),
    )
]
"""How a sentence begins, and what is asked then; the first that fits counts."""
_POINTS = re.compile(r"\b(?:this|that|these|those|it|them|here|above|below)$", re.IGNORECASE)
"""How a part of a sentence ends that says nothing alone."""
_MINE = (("your", "my"), ("you are", "I am"), ("you're", "I'm"), ("you", "I"))
FAR_QUESTIONS = """
How do I sharpen a kitchen knife on a whetstone?
What is the capital of Mongolia?
How long does a tortoise live?
Who painted the ceiling of the Sistine Chapel?
Why do leaves turn red in autumn?
How many strings does a cello have?
What is the boiling point of ethanol?
How do I remove candle wax from a tablecloth?
When did the Berlin Wall fall?
Which planet has the most moons?
How do I prune a rose bush?
What causes a solar eclipse?
How far is a marathon?
Who wrote The Brothers Karamazov?
What is the offside rule in football?
How do bees make honey?
How do I descale a kettle?
Which river flows through Baghdad?
What is the difference between a crocodile and an alligator?
How is paper made from wood?
What are the symptoms of scurvy?
How do I tie a bowline knot?
Who was the first woman in space?
How many bones does an adult human have?
What does a carburettor do?
How do I change a bicycle tyre?
Why is the sea salty?
What is a sonnet?
How tall is Mount Kilimanjaro?
Which metals are magnetic?
How do I get rid of aphids on tomatoes?
What is the currency of Vietnam?
When was the printing press invented?
How does a refrigerator keep food cold?
What do pandas eat?
How do I knit a scarf?
Which instrument did Miles Davis play?
What is the longest bone in the body?
How are earthquakes measured?
Why do cats purr?
What is the tallest building in Chile?
How do I iron a linen shirt?
Who discovered penicillin?
How deep is the Mariana Trench?
What is the difference between a violin and a viola?
How do I plant tulip bulbs?
What is plate tectonics?
Which countries border Paraguay?
How long does it take light to reach us from the Sun?
How do I whistle with two fingers?
What is an oxbow lake?
Who won the first football World Cup?
How does a sundial show the time?
What are the rings of Saturn made of?
How do I train a puppy to sit?
Why is the Dead Sea so salty?
What is the national dish of Hungary?
How is glass blown?
What is a leap second?
How do I keep squirrels away from a bird feeder?
""".strip().splitlines()
"""What hardly any index of documents is about; a second index gives others."""


class MadeQuestion(NamedTuple):
    """A question with where it comes from."""

    question: str
    kind: Kind
    """The documents answer it; they do without its section; or they are about other things."""
    source: str = ""
    section: str = ""
    sentence: str = ""
    """The sentence that answers it, if it was made of one; else the whole section does."""

    def is_of(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a chunk stands in the section of the question, or beneath it."""
        section = str(metadata.get("section") or "")
        beneath = not self.section or f"{section}{_BENEATH}".startswith(f"{self.section}{_BENEATH}")
        return metadata.get("source") == self.source and beneath

    def repeated_in(self, text: str, section: str) -> bool:
        """Return whether a text elsewhere holds the sentence, or has the same heading."""
        if self.sentence:
            return holds(text, self.sentence)
        return bool(section) and _last(section) == _last(self.section)


def holds(text: str, sentence: str) -> bool:
    """Return whether a text has nearly all words of a sentence."""
    wanted, found = (set(_WORD.findall(words.casefold())) for words in (sentence, text))
    return len(wanted & found) >= _HELD * len(wanted)


def questions_of(index: DocumentIndex, most: int, kind: Kind, seed: int = 0) -> list[MadeQuestion]:
    """Make at most `most` questions of an index, one of a section, by turns of both kinds.

    A heading that stands in several files asks nothing, and is left out.
    """
    stored = sorted(
        index.stored(), key=lambda one: (str(one.metadata["source"]), one.metadata.get("chunk", 0))
    )
    files: dict[str, set[str]] = defaultdict(set)
    for chunk in stored:
        files[_heading(chunk.metadata)].add(str(chunk.metadata["source"]))
    random.Random(seed).shuffle(stored)  # noqa: S311 - no secret
    made: dict[tuple[str, str], MadeQuestion] = {}
    asked: set[str] = set()
    for chunk in stored:
        if len(made) >= most:
            return list(made.values())
        place = str(chunk.metadata["source"]), str(chunk.metadata.get("section") or "")
        heading = _heading(chunk.metadata)
        of_heading = question_of_heading(heading) if len(files[heading]) == 1 else ""
        sentence = first_sentence(chunk.page_content)
        found = [(question_of_sentence(sentence), sentence), (of_heading, "")]
        found = [(question, of) for question, of in found if question]
        if place in made or not found:
            continue
        question, of = found[-1] if len(made) % 2 else found[0]
        if question.casefold() not in asked:
            asked.add(question.casefold())
            made[place] = MadeQuestion(question, kind, *place, of)
    return list(made.values())


def far_questions(most: int, seed: int = 0) -> list[MadeQuestion]:
    """Draw at most `most` of the questions that ship with the package."""
    drawn = random.Random(seed).sample(FAR_QUESTIONS, len(FAR_QUESTIONS))  # noqa: S311
    return [MadeQuestion(question, "far") for question in drawn[:most]]


def question_of_heading(heading: str) -> str:
    """Return what a section with this heading is asked for; empty for a heading that says little.

    >>> question_of_heading("How to install from source")
    'How do I install from source?'
    >>> question_of_heading("Concurrency limitations")
    'What are concurrency limitations?'
    """
    heading = " ".join(heading.replace("`", "").split())
    heading = _NUMBER.sub("", heading.strip(" #*:.")).rstrip("?")
    words = heading.split()
    if not _SHORTEST_HEADING <= len(words) <= _LONGEST_HEADING or not _is_english(heading):
        return ""
    first, rest = words[0].casefold(), " ".join(words[1:])
    if first == "how" and rest.casefold().startswith("to "):
        return f"How do I {rest[3:]}?"
    if _ASKING.match(heading):
        return f"{heading}?"
    if _SAYS.match(heading):
        return f"How do I {_mine(f'{first} {rest}')}?"
    if first.endswith("ing"):
        return f"How does {_mine(f'{first} {rest}')} work?"
    are = words[-1].endswith("s") and not words[-1].endswith("ss")
    return f"What {'are' if are else 'is'} {_mine(_begun_small(heading))}?"


def question_of_sentence(sentence: str) -> str:
    """Return a question that this sentence answers; empty where no rule fits.

    >>> question_of_sentence("The default size of the pool is only 40 tokens.")
    'What is the default size of the pool?'
    """
    if not _SHORTEST_SENTENCE <= len(sentence.split()) <= _LONGEST_SENTENCE:
        return ""
    for pattern, question in _RULES:
        found = pattern.match(sentence)
        if found and not _POINTS.search(found["asked"]):
            return question.format(asked=_mine(_begun_small(found["asked"])))
    return ""


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph of prose; empty if that is not English."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.strip().splitlines()
        if lines and all(_PROSE.match(line) for line in lines):
            sentence = next(iter(sentences_of(paragraph)), "").strip()
            if sentence.endswith((".", "!")) and _is_english(sentence):
                return sentence
    return ""


def _heading(metadata: Mapping[str, Any]) -> str:
    return _last(str(metadata.get("section") or metadata.get("title") or ""))


def _last(section: str) -> str:
    return section.rpartition(_BENEATH)[2]


def _is_english(text: str) -> bool:
    return language_of(text) in {ENGLISH, ""} and text.isascii()


def _begun_small(text: str) -> str:
    """Begin with a small letter, unless the first word may be a name or code."""
    first, _, rest = text.partition(" ")
    is_word = first.isalpha() and first.istitle()
    is_name = is_word and _begins_with_capital(rest.split())
    return text if is_name or not is_word else text[0].lower() + text[1:]


def _begins_with_capital(words: Iterable[str]) -> bool:
    return any(word[0].isupper() for word in words)


def _mine(text: str) -> str:
    """Say in the words of who asks what a document says to its reader."""
    for theirs, mine in _MINE:
        text = re.sub(rf"\b{theirs}\b", mine, text)
    return text
