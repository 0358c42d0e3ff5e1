"""How back ends make decisions and candidates: from tokens, or in place of a model with them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from crag.parts import Candidate, Decision, Passage, Probabilities, SegmentLimits
from crag.reflection.scoring import argmax
from crag.reflection_tokens import (
    CONTINUE,
    END,
    GROUPS,
    NO_RETRIEVAL,
    RETRIEVAL,
    RETRIEVE,
    TOKENS,
    Group,
)
from crag.state import Ending
from crag.text.untrusted import neutral

LARGEST_GROUP = max(map(len, GROUPS.values()))
_ENDINGS: Mapping[str, Ending] = {
    RETRIEVAL: "retrieve",
    NO_RETRIEVAL: "no_retrieve",
    CONTINUE: "continue",
    END: "end",
}


def approximation_of(names: Collection[str]) -> str:
    """Return what a model lacks among the tokens `names` that it has; empty if it has all."""
    missing = sum(token not in names for token in TOKENS)
    if not missing:
        return ""
    return f"the model lacks {missing} of {len(TOKENS)} reflection tokens: critiques are neutral"


class Position(NamedTuple):
    """One generated token, with what reflection needs of it."""

    token: str
    """A reflection token, `END` for whatever token ends the model's texts, empty for any other."""
    log_probability: float
    """Of the token that was generated."""
    seen: Mapping[str, float]
    """Log-probability of each reflection token that the back end received here."""


def length(positions: Sequence[Position], limits: SegmentLimits) -> int:
    """Return how many tokens belong to the segment: those before the one that ends it."""
    enders = {END} if limits.whole_answer else _ENDINGS.keys()
    return next((i for i, at in enumerate(positions) if at.token in enders), len(positions))


def read_candidate(
    positions: Sequence[Position],
    text: str,
    limits: SegmentLimits,
    *,
    has_passage: bool,
    otherwise: Ending,
) -> Candidate:
    """Read a candidate from its tokens; `text` is that of the segment's `length` tokens.

    `otherwise` is the ending if no token marks one.
    """
    end = length(positions, limits)
    kept = positions[:end]
    first = _probabilities(positions[0], "relevance") if positions else {}
    total = math.fsum(at.log_probability for at in kept)
    return Candidate(
        text=text,
        relevance=first if has_passage else None,
        support=_where_emitted(kept, "support"),
        utility=_where_emitted(kept, "utility"),
        mean_log_probability=min(0.0, total / max(1, end)),
        tokens=end,
        ending=_ENDINGS[positions[end].token] if end < len(positions) else otherwise,
        end_log_probability=positions[end].log_probability if end < len(positions) else None,
        retrieve=tuple(_probabilities(at, "retrieve") for at in kept if at.token in RETRIEVE),
    )


def read_decision(position: Position, emitted: str) -> Decision:
    """Read a decision from the first token after a prefix, whose text is `emitted`."""
    return Decision(_probabilities(position, "retrieve"), emitted)


def shortest_cut(passage: Passage, fits: Callable[[Passage], bool]) -> Passage:
    """Return the passage with the longest beginning of its text that fits, cut between words.

    The text is empty where not even its first character fits.
    """
    if fits(passage):
        return passage
    fitting, most = 0, len(passage.text)
    while fitting < most:
        middle = (fitting + most + 1) // 2
        if fits(passage._replace(text=passage.text[:middle])):
            fitting = middle
        else:
            most = middle - 1
    return passage._replace(text=_whole_words(passage.text, fitting))


def _whole_words(text: str, most: int) -> str:
    """Return the first `most` characters, less a word that would be torn apart."""
    kept = text[:most]
    torn = not text[most : most + 1].isspace() and len(kept.split()) > 1
    return (kept.rsplit(maxsplit=1)[0] if torn else kept).rstrip()


def _probabilities(position: Position, group: Group) -> Probabilities:
    seen = position.seen
    return {token: math.exp(seen[token]) for token in GROUPS[group] if token in seen}


def _where_emitted(positions: Sequence[Position], group: Group) -> Probabilities | None:
    emitted = (_probabilities(at, group) for at in positions if at.token in GROUPS[group])
    return next(emitted, None)


NO_LOG_PROBABILITY = 0.0
"""For text without a language model, or from a server without log-probabilities: the sequence score
is 1 for every text, which changes no ranking."""


def prose(text: str) -> str:
    """Return a segment's words on one line, with nothing that reads as a token or a citation."""
    return " ".join(neutral(text).split())


def shortened(text: str, limits: SegmentLimits) -> tuple[str, bool]:
    """Return at most as many words as the segment may have tokens, and whether any were cut off.

    A word has at least one token, so a text of few enough tokens is never cut.
    """
    words = text.split()
    return " ".join(words[: limits.max_tokens]), len(words) > limits.max_tokens


def written(
    text: str,
    *,
    relevance: Probabilities | None,
    support: Probabilities | None,
    utility: Probabilities | None,
) -> str:
    """Return ``[Relevant]text[Fully supported][Utility:5]`` with the likeliest token of each."""
    after = argmax("support", support) + argmax("utility", utility)
    return argmax("relevance", relevance) + text + after


def nothing(relevance: Probabilities | None) -> Candidate:
    """Return a candidate without text; its sequence score is 0."""
    return Candidate("", relevance, None, None, NO_LOG_PROBABILITY, 0, "end")
