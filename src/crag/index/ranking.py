"""Rank what is found by meaning and by words: one score of both, and few that are alike."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import log
from typing import TYPE_CHECKING, NamedTuple

from langchain_core.documents import Document

from crag.settings import FindBy
from crag.text.language import reads
from crag.text.words import exact_names, names_in, question_words, words

if TYPE_CHECKING:
    from crag.index.store import DocumentIndex

_CANDIDATES = 50
"""Texts that each half finds before both are ranked."""
_MOST_RANKED = 20_000
"""Texts with a word of the question that are ranked by words; those with the rarest come first."""
_MEANING, _WORDS, _NAMES = 1.0, 1.25, 2.0
"""How much meaning, words and names count. Fitted to real documentation, folder half as much and
twice as much find nearly the same; meaning and words together rarely count more than a name."""
_UNREAD = 0.3
"""How much the meaning counts of a question that the embedding model does not read."""
_CAPITAL = 0.5
"""How much a word with a capital letter is a name, beside a code or a quoted phrase."""
_K1, _B = 1.2, 0.75
_MOST_ALIKE = 3
"""Texts that differ in nothing but numbers; more of them come after all others."""
_REACHES = 2, 20
"""Times as many texts are looked through, and where they are much alike."""
_LETTERS = re.compile(r"[^\W\d_]+")
_LONG = 80
"""Characters from which equal texts say the same, whatever their titles."""
_DIGIT = re.compile(r"\d")
_QUOTED = re.compile(r'["“„«`]([^"“”„«»`]{3,300})["“”»`]')


Term = tuple[str, ...]
"""Words that follow each other, mostly one alone, as `crag.text.words` makes them."""


class Passage(NamedTuple):
    """What ranking needs of a text that was found."""

    number: int
    """Of the text in its index; several chunks may have the text."""
    heading: str
    """The title of its document and the headings above it."""
    text: str
    cosine: float = 0.0
    """Of its vector and that of the question."""


def find(index: "DocumentIndex", question: str, k: int, by: FindBy, folder: str) -> list[Document]:
    """Return the `k` chunks that serve a question best, best first."""
    wanted = max(k, _CANDIDATES)
    found, weights = dict[int, Passage](), dict[Term, Weight]()
    vector: Sequence[float] = ()
    if by != "words":
        vector = index.embeddings.embed_query(question)
        found |= _spread(index, vector, partial(index.by_vector, vector, folder=folder), wanted)
    if by != "meaning":
        terms = terms_of(question)
        total, counts = index.holders(terms)
        holders = {term: n for term, n in zip(terms, counts, strict=True) if n}
        scarce = [term for term, n in holders.items() if n <= wanted]
        for some in (scarce, _rarest(holders)):  # Or what has many other words hides a name.
            found |= _spread(index, vector, partial(index.by_words, some, folder=folder), wanted)
        weights = _weights(question, total, holders)
    meaning = _MEANING if reads(index.embeddings, question) else _UNREAD
    scores = scored(list(found.values()), weights, meaning)
    groups = dict[str, list[Passage]]()
    for passage in sorted(found.values(), key=lambda one: (-scores[one.number], one.number)):
        text = " ".join(passage.text.split())
        same = text if len(text) >= _LONG else f"{passage.heading}\n{text}"
        groups.setdefault(same, []).append(passage)
    numbers = {group[0]: [one.number for one in group] for group in groups.values()}
    shown = list(dict.fromkeys([*_few_alike(numbers), *numbers]))[:k]
    documents = (index.document(numbers[one], folder) for one in shown)
    return [document for document in documents if document]


def _spread(
    index: "DocumentIndex",
    vector: Sequence[float],
    search: Callable[[int], list[int]],
    wanted: int,
) -> dict[int, Passage]:
    """Search, and for more if too many of the texts that are found are alike.

    Else the lines of one log would be all that is found, whatever stands beside it.
    """
    few, ordered = list[Passage](), list[Passage]()
    for reach in _REACHES:
        if len(few) < wanted:
            numbers = search(reach * wanted)
            found = {one.number: one for one in index.passages(numbers, vector)}
            ordered = [found[number] for number in numbers if number in found]
            few = _few_alike(ordered)
    return {one.number: one for one in list(dict.fromkeys([*few, *ordered]))[:wanted]}


def _few_alike(passages: Iterable[Passage]) -> list[Passage]:
    """Return passages, in order, without those that enough before them are alike."""
    seen = Counter[str]()
    few = []
    for one in passages:
        kind = " ".join(_LETTERS.findall(one.text))
        seen[kind] += 1
        if seen[kind] <= _MOST_ALIKE:
            few.append(one)
    return few


def terms_of(question: str) -> list[Term]:
    """Return what to look for: the words of a question, and what it quotes as one phrase.

    >>> terms_of('Who said "out of range"?')
    [('said',), ('rang',), ('out', 'of', 'rang')]
    """
    terms = [(word,) for word in question_words(question)]
    phrases = (tuple(words(quoted)) for quoted in _QUOTED.findall(question))
    return list(dict.fromkeys([*terms, *(phrase for phrase in phrases if len(phrase) > 1)]))


def scored(
    passages: Sequence[Passage], weights: Mapping[Term, "Weight"], meaning: float
) -> dict[int, float]:
    """Return a score for each passage, by number: its meaning, its words and its names.

    Each of these is from 0 to 1. The meaning is the cosine, between the nearest and the fiftieth;
    so it does not matter in which range an embedding model has its cosines (Bruch et al. 2022). The
    words are those of BM25, with a rarity that counts twice. The names are what is looked for as it
    is written, a code, a quoted phrase, a name: what stands in one text alone decides, and what
    many have says little.
    """
    spelled = {one.number: [*words(one.heading), *words(one.text)] for one in passages}
    words_in_all = max(sum(map(len, spelled.values())), 1)
    cosines = sorted((one.cosine for one in passages), reverse=True)[:_CANDIDATES]
    all_words = sum(weight.word for weight in weights.values()) or 1.0
    scores = {}
    for one in passages:
        found = _occurrences(spelled[one.number], weights)
        length = 1 - _B + _B * len(spelled[one.number]) * len(spelled) / words_in_all
        said = sum(weights[term].word * n / (n + _K1 * length) for term, n in found.items())
        named = min(sum(weights[term].name for term in found), 1.0)
        meant = max(one.cosine - cosines[-1], 0.0) / max(cosines[0] - cosines[-1], 1e-6)
        scores[one.number] = meaning * meant + _WORDS * said / all_words + _NAMES * named
    return scores


class Weight(NamedTuple):
    """What a term of the question counts."""

    word: float
    name: float
    """One over the texts that have it; 0 if the question does not ask for it as it is written."""


def _weights(question: str, total: int, holders: Mapping[Term, int]) -> dict[Term, Weight]:
    """Return the weights of terms by how many texts have them."""
    exact = {word for name in exact_names(question) for word in _distinctive(name)}
    capital = {word for name in names_in(question) for word in _distinctive(name)}
    weights = {}
    for term, number in holders.items():
        rarity = log(1 + (total - number + 0.5) / (number + 0.5))
        is_exact = len(term) > 1 or term[0] in exact  # pyright: ignore[reportGeneralTypeIssues]
        name = 1 if is_exact else _CAPITAL if term[0] in capital else 0  # pyright: ignore[reportGeneralTypeIssues]
        weights[term] = Weight(rarity**2, name / number)
    return weights


def _distinctive(name: str) -> list[str]:
    """Return the words of a name that stand for it: the whole, and its parts with digits."""
    spelled = list(words(name))
    return [*spelled[:1], *filter(_DIGIT.search, spelled[1:])]


def _occurrences(spelled: Sequence[str], terms: Collection[Term]) -> dict[Term, int]:
    """Return how often a text has each of the terms that it has."""
    counts = Counter(spelled)
    joined = f" {' '.join(spelled)} " if any(len(term) > 1 for term in terms) else ""
    found = {
        term: counts[term[0]] if len(term) == 1 else joined.count(f" {' '.join(term)} ")
        for term in terms
    }
    return {term: number for term, number in found.items() if number}


def _rarest(holders: Mapping[Term, int]) -> list[Term]:
    """Return the terms that are looked for: the rarest, up to so many texts that have one."""
    taken, reach = list[Term](), 0
    for term, number in sorted(holders.items(), key=lambda one: one[1]):
        reach += number
        if not taken or reach <= _MOST_RANKED:
            taken.append(term)
    return taken
