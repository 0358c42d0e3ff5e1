"""Score strips, and parts of strips, by the reading of the whole passage that they stand in.

The papers score each strip alone (CRAG, Sec. 4.4). A strip without its heading and neighbours often
does not show what it is about, and the same words are evaluated again. An evaluator that reads says
in the pass that graded a document which of its words are evidence; that, together with the
document's own score, ranks the strips.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from langchain_core.documents import Document

from crag.correction.provenance import source_of, source_within, unscored
from crag.correction.strips import choose, decompose, located, score_of, units_of
from crag.reading import Reading, evidence_in, sliced
from crag.settings import Decomposition, Settings
from crag.state import Strip
from crag.text.wholes import contexts_of, pieces_of

STRIPS_KEPT_IN_CONTEXT: Final = 8
"""Strips kept of the documents unless `Settings.strips_kept` says otherwise. They hold the
evidence for 87 of the 95 questions of `measurements/docs_questions.py` whose documents do."""
LEAST_SCORE: Final = -0.9996
"""Strips in context are dropped below this, which loses no evidence of those and leaves 37 % of the
words of ten documents instead of 42 %."""
_BEST = 0.5
"""Share of a strip whose evidence counts: half of it may only lead up to the answer."""
_DOCUMENT_WEIGHT, _RANK_WEIGHT = 1.5, 0.45
"""What the log-odds of a document count for each of its strips, and what each place further down in
the retrieval takes from them."""
_LEAST = 0.005
"""Probabilities nearer to 0 or 1 say no more than this one."""
_CERTAIN = 1 - 1e-12
"""A score of 1 has no log-odds."""


def strips_in_context(
    documents: Sequence[Document], readings: Sequence[Reading], settings: Settings
) -> list[Strip]:
    """Decompose documents and score each strip by the reading of its document; keep the best."""
    strips: list[Strip] = []
    for rank, (document, reading) in enumerate(zip(documents, readings, strict=True)):
        whole = unscored(document.page_content, source_of(document, rank))
        parts = parts_in_context(whole, reading, rank, settings.decomposition)
        strips += [strip for _, strip in parts]
    return kept_best(strips, settings.strips_kept or STRIPS_KEPT_IN_CONTEXT, LEAST_SCORE)


def parts_in_context(
    whole: Strip, reading: Reading, rank: int = 0, mode: Decomposition = "sentences"
) -> Iterator[tuple[int, Strip]]:
    """Decompose a text that was read, and yield the offset of each strip with the strip, scored."""
    text, standing = whole["text"], _standing(reading, rank)
    pieces = list(pieces_of(text))
    places = units_of(text, pieces) if mode == "sentences" else located(text, decompose(text, mode))
    contexts = contexts_of(text, pieces, [start for start, _ in places])
    for (begin, last), context in zip(places, contexts, strict=True):
        line = text.rfind("\n", 0, begin) + 1
        start = begin if text[line:begin].strip() else line  # Indented as its other lines are.
        own = text[start:last].rstrip()
        end = start + len(own)
        source = source_within(whole["source"], text, start, end)
        strip: Strip = {**whole, "text": own, "source": source}
        if context:
            strip["before"] = context.rstrip(" \t") if start < begin else context
        yield start, _scored(strip, sliced(reading, start, end, standing))


def paragraph_in_context(strip: Strip, reading: Reading) -> Strip:
    """Score a paragraph from the web, which is a passage of its own, by its reading."""
    return _scored(strip, {**reading, "score": _standing(reading, 0)})


def kept_best(strips: Sequence[Strip], count: int, threshold: float | None = None) -> list[Strip]:
    """Keep the best `count` strips that reach the threshold, if one is set; the best one anyway."""
    verdicts = choose(list(map(score_of, strips)), count, threshold)
    return [
        {**strip, "kept": kept, "reason": reason}
        for strip, (kept, reason) in zip(strips, verdicts, strict=True)
    ]


def score_odds(score: float) -> float:
    """Return the log-odds for a score in [-1, 1], within about 28 of 0."""
    return 2 * math.atanh(max(-_CERTAIN, min(_CERTAIN, score)))


def _scored(strip: Strip, reading: Reading) -> Strip:
    """Score a strip in [-1, 1] by the reading of it, whose own score is its document's standing.

    In log-odds the score is the evidence of the better half of its words plus that standing.
    """
    evidence = _log_odds(evidence_in(reading, 0, len(strip["text"]), best=_BEST))
    score = math.tanh((evidence + score_odds(reading["score"])) / 2)
    return {**strip, "score": score, "reading": reading}


def _standing(reading: Reading, rank: int) -> float:
    """Return what the document and its rank say of every strip in it, within (-1, 1)."""
    odds = _DOCUMENT_WEIGHT * _log_odds((1 + reading["score"]) / 2) - _RANK_WEIGHT * rank
    return math.tanh(odds / 2)


def _log_odds(probability: float) -> float:
    share = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(share / (1 - share))
