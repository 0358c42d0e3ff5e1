"""Score strips, and parts of strips, by the reading of their passage and by what a question names.

The papers score each strip alone (CRAG, Sec. 4.4). A strip without its heading and neighbours often
does not show what it is about, and the same words are evaluated again. An evaluator that reads says
in the pass that graded a document which of its words are evidence; that, together with the
document's own score and the names of the question, ranks the strips.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from langchain_core.documents import Document

from crag.correction.provenance import source_of, source_within, strip_of
from crag.correction.strips import kept_best, score_of
from crag.reading import Reading, evidence_in, sliced
from crag.settings import Settings
from crag.state import Strip
from crag.text.units import units_of
from crag.text.words import bare, exact_names, names_lacking, question_words, words

STRIPS_KEPT_IN_CONTEXT: Final = 8
"""Strips kept of the documents unless `Settings.strips_kept` says otherwise. They hold the
evidence for 88 of the 95 questions of `crag.papers.studies.docs_questions` whose documents do."""
LEAST_SCORE: Final = -0.9997
"""Strips in context are dropped below this, which loses no evidence of those and leaves 32 % of the
words of ten documents instead of 43 %."""
_BEST = 0.5
"""Share of a strip whose evidence counts: half of it may only lead up to the answer."""
_DOCUMENT_WEIGHT, _RANK_WEIGHT = 1.5, 1.0
"""What the log-odds of a document count for each of its strips, and what each place further down in
the retrieval takes from them. With 0.5 for a place, two of the documentation questions less are
shown a right quotation; 0.8 to 1.2 show the same."""
_LEAST = 0.005
"""Probabilities nearer to 0 or 1 say no more than this one."""
_CERTAIN = 1 - 1e-12
"""A score of 1 has no log-odds."""
EXACT_WEIGHT: Final = 8.0
"""Log-odds that a text loses without a code, a number or a quoted phrase of the question that only
one of all has."""
NAME_WEIGHT: Final = 6.0
"""The same for a word that begins with a capital letter."""
LABEL_WEIGHT: Final = 2.0
"""The same for any other word that labels texts, which is often a common one, such as "command".
With 6 instead of 2, the first quotation of one documentation question less is right."""
_QUOTED = re.compile(r"[\"“”„«`]([^\"“”„«»`\n]{2,200})[\"”“»`]")
_LETTERED = re.compile(r"\b[^\W\d_]{2,} (?!I\b)[A-Z]\b")
"""What a letter tells apart, such as "plan B": alone, it may be a stop word."""
_CAPITAL = re.compile(r"(?<=[\w,;] )[^\W\d_a-z][\w.+#-]*")
"""A word with a capital letter that does not begin a sentence."""


def strips_in_context(
    question: str, documents: Sequence[Document], readings: Sequence[Reading], settings: Settings
) -> list[Strip]:
    """Decompose documents and score each strip by the reading of its document; keep the best.

    A strip loses for the names of the question that it lacks, but is not dropped for that alone.
    """
    strips: list[Strip] = []
    for rank, (document, reading) in enumerate(zip(documents, readings, strict=True)):
        source, standing = source_of(document, rank), _standing(reading, rank)
        for unit in units_of(document.page_content):
            own = sliced(reading, unit.start, unit.end, standing)
            strips.append(_scored(strip_of(document, source, unit), own))
    lacks = named_odds(question, [(about(strip), strip["text"]) for strip in strips])
    for strip, lost in zip(strips, lacks, strict=True):
        read = score_of(strip)
        strip["score"] = max(math.tanh((score_odds(read) + lost) / 2), min(read, LEAST_SCORE))
    return kept_best(strips, settings.strips_kept or STRIPS_KEPT_IN_CONTEXT, LEAST_SCORE)


def parts_in_context(strip: Strip, reading: Reading) -> Iterator[tuple[int, Strip]]:
    """Cut a text that was read whole, and yield the offset of each part with the part, scored."""
    text, standing = strip["text"], _standing(reading, 0)
    for unit in units_of(text):
        part: Strip = {**strip, "text": text[unit.start : unit.end]}
        part["source"] = source_within(strip["source"], text, unit.start, unit.end)
        part["headings"] = [*strip.get("headings", []), *unit.headings]
        part["before"] = unit.before
        yield unit.start, _scored(part, sliced(reading, unit.start, unit.end, standing))


def paragraph_in_context(strip: Strip, reading: Reading) -> Strip:
    """Score a paragraph from the web, which is a passage of its own, by its reading."""
    return _scored(strip, {**reading, "score": _standing(reading, 0)})


def score_odds(score: float) -> float:
    """Return the log-odds for a score in [-1, 1], within about 28 of 0."""
    return 2 * math.atanh(max(-_CERTAIN, min(_CERTAIN, score)))


def evidence_odds(strip: Strip) -> float:
    """Return the evidence of the better half of a strip's words, with its document's standing."""
    reading = strip["reading"]
    evidence = _log_odds(evidence_in(reading, 0, len(strip["text"]), best=_BEST))
    return evidence + score_odds(reading["score"])


def _scored(strip: Strip, reading: Reading) -> Strip:
    """Score a strip in [-1, 1] by the reading of it, whose own score is its document's standing."""
    read: Strip = {**strip, "reading": reading}
    return {**read, "score": math.tanh(evidence_odds(read) / 2)}


def _standing(reading: Reading, rank: int) -> float:
    """Return what the document and its rank say of every strip in it, within (-1, 1)."""
    odds = _DOCUMENT_WEIGHT * _log_odds((1 + reading["score"]) / 2) - _RANK_WEIGHT * rank
    return math.tanh(odds / 2)


def _log_odds(probability: float) -> float:
    share = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(share / (1 - share))


def about(strip: Strip) -> str:
    """Return what says what a strip is about, but for its own words."""
    said = [strip["source"]["title"], *strip.get("headings", []), strip.get("before", "")]
    return "\n".join(filter(None, said))


def lacking(question: str, strips: Iterable[Strip]) -> list[str]:
    """Return the names of a question that no strip has, nor what says what the strip is about.

    What lacks one may be about another of its kind, such as the ticket of another town.
    """
    return names_lacking(question, " ".join(f"{strip['text']} {about(strip)}" for strip in strips))


def named_odds(question: str, texts: Sequence[tuple[str, str]]) -> list[float]:
    """Return what each text loses, in log-odds, for the names of a question that it lacks.

    `texts` are pairs of what says what a text is about, and the text itself. Names are codes,
    numbers, quoted phrases, words with capital letters, and words of the labels. One counts the
    less the more texts have it, and one that none has not at all; the best text loses nothing.
    """
    named = [*_QUOTED.findall(question), *_LETTERED.findall(question)]
    phrases = {phrase for one in named if (phrase := _folded(one))}
    capital = {word for found in _CAPITAL.finditer(question) for word in words(found[0])}
    asked, labels = set(question_words(question)), set[str]()
    held: list[set[str]] = []
    for label, text in texts:
        said = f"{label}\n{text}".replace("\\", "")
        plain = _folded(said) if phrases else ""
        held.append(asked.intersection(words(said)) | {one for one in phrases if one in plain})
        labels |= asked.intersection(words(label))
    weights: dict[str, float] = {}
    for name, count in Counter(name for own in held for name in own).items():
        is_exact = name in phrases or bool(exact_names(name))
        label_weight = LABEL_WEIGHT if name in labels else 0.0
        weight = EXACT_WEIGHT if is_exact else NAME_WEIGHT if name in capital else label_weight
        weights[name] = weight * (1 - math.log(count) / math.log(len(texts) + 1))
    lost = [sum(weight for name, weight in weights.items() if name not in own) for own in held]
    least = min(lost, default=0.0)
    return [least - one for one in lost]


def _folded(text: str) -> str:
    return bare(text).casefold() if text.strip() else ""
