"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from crag.parts import ChatModel
from crag.prompts import render
from crag.reflection.asking import Call, FormAsker, Said
from crag.reflection.backend import (
    Candidate,
    Decision,
    Ending,
    Passage,
    Prefix,
    Probabilities,
    SegmentLimits,
)
from crag.reflection.cleaning import cleaned
from crag.reflection.forms import (
    Answer,
    JudgedAnswer,
    JudgedSegment,
    NextRetrieval,
    Retrieval,
    Segment,
)
from crag.reflection.log_probabilities import of_labels, of_text
from crag.reflection.scoring import argmax
from crag.reflection.segments import NO_LOG_PROBABILITY, nothing, prose, shortened, written
from crag.reflection.tokens import (
    CONTINUE,
    FULLY,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
)
from crag.untrusted import neutral

LONGEST_PASSAGE = 8000
"""Characters of a passage that the model is shown; the rest is cut off."""
DEFAULT_CONCURRENCY = 8
_PROMPTS: Mapping[type[BaseModel], str] = {
    Retrieval: "reflect_retrieve",
    NextRetrieval: "reflect_next",
    Answer: "reflect_answer_alone",
    Segment: "reflect_segment_alone",
    JudgedAnswer: "reflect_answer",
    JudgedSegment: "reflect_segment",
}
_RETRIEVE = {"yes": RETRIEVAL, "no": NO_RETRIEVAL, "continue": CONTINUE}
_RELEVANCE = {"relevant": RELEVANT, "irrelevant": IRRELEVANT}
_SUPPORT = {"fully": FULLY, "partially": PARTIALLY, "none": NO_SUPPORT}
_UTILITY = {str(grade): token for grade, token in enumerate(UTILITY, start=1)}


class PromptedReflection:
    """Ask a chat model for text and critiques together, in one call for each passage.

    The critiques are those of Self-RAG's critic. Each is a field of structured output where the
    model is a LangChain chat model that has it, and of JSON in the reply otherwise, or if
    `structured` is off (for servers that refuse a schema). Probabilities are those that the server
    tells of its tokens (``ChatOpenAI(logprobs=True, top_logprobs=5)``), and without them 1 and 0;
    the mean log-probability is then 0.

    A passage judged irrelevant has no IsSup. IsUse is given where a text ends the answer, as a
    model with the tokens does. A text of more words than the segment may have tokens is cut; the
    model itself is not limited, since half a form is none.

    At most `concurrency` calls of one round run at a time; `crag.reflection.spending` counts them.

    Raises:
        SettingsError: `concurrency` is below 1.
    """

    approximation = "a chat model without reflection tokens was asked for IsRel, IsSup and IsUse"

    def __init__(
        self,
        model: ChatModel,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        structured: bool = True,
    ) -> None:
        self._asker = FormAsker(model, _PROMPTS, concurrency=concurrency, structured=structured)

    def decide(self, prefix: Prefix) -> Decision:
        """Ask whether to retrieve; at the beginning of an answer "continue" is no choice.

        Raises:
            ModelError: the call failed, or its reply is malformed.
        """
        return self._decision(self._asker.ask(_decision_call(prefix)))

    async def adecide(self, prefix: Prefix) -> Decision:
        """Do as `decide` without blocking the event loop."""
        return self._decision(await self._asker.aask(_decision_call(prefix)))

    def candidates(
        self, prefix: Prefix, passages: Sequence[Passage | None], limits: SegmentLimits
    ) -> list[Candidate]:
        """Ask about all passages at the same time, about equal ones once.

        A call that failed, was refused or gave a malformed reply makes an empty candidate without
        critiques.

        Raises:
            ModelError: this happened to every call.
        """
        calls = _calls(prefix, passages, limits)
        said = self._asker.ask_all(list(calls.values()))
        made = dict(zip(calls, said, strict=True))
        return [_candidate(made[passage], passage, limits) for passage in passages]

    async def acandidates(
        self, prefix: Prefix, passages: Sequence[Passage | None], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates` without blocking the event loop."""
        calls = _calls(prefix, passages, limits)
        said = await self._asker.aask_all(list(calls.values()))
        made = dict(zip(calls, said, strict=True))
        return [_candidate(made[passage], passage, limits) for passage in passages]

    def _decision(self, said: Said) -> Decision:
        if not isinstance(said.form, Retrieval | NextRetrieval):
            raise self._asker.failure(said)
        shares = _probabilities(said, "retrieval", _RETRIEVE, said.form.retrieval)
        return Decision(shares, argmax("retrieve", shares))


def _decision_call(prefix: Prefix) -> Call:
    form = NextRetrieval if prefix.answered else Retrieval
    return _call(form, prefix, prefix.passage)


def _calls(
    prefix: Prefix, passages: Sequence[Passage | None], limits: SegmentLimits
) -> dict[Passage | None, Call]:
    judged = JudgedAnswer if limits.whole_answer else JudgedSegment
    alone = Answer if limits.whole_answer else Segment
    return {
        passage: _call(alone if passage is None else judged, prefix, passage)
        for passage in passages
    }


def _call(form: type[BaseModel], prefix: Prefix, passage: Passage | None) -> Call:
    question, knowledge = neutral(prefix.instruction), _material(prefix, passage)
    return Call(form, render(_PROMPTS[form], question=question, knowledge=knowledge))


def _material(prefix: Prefix, passage: Passage | None) -> str:
    """Fence what was written so far and the passage; neither can leave its tags."""
    said = cleaned(prefix.answered).replace("<", "‹")
    parts = [f"<written>\n{said}\n</written>"] if said else []
    if passage is not None:
        text = neutral(f"{passage.title}\n{passage.text[:LONGEST_PASSAGE]}").strip()
        parts.append(f"<passage>\n{text}\n</passage>")
    return "\n\n".join(parts)


class _Critiques(NamedTuple):
    relevance: Probabilities | None
    support: Probabilities | None
    utility: Probabilities | None


def _candidate(said: Said, passage: Passage | None, limits: SegmentLimits) -> Candidate:
    form = said.form
    if not isinstance(form, Answer | JudgedAnswer):
        return nothing(None if passage is None else {})
    text, is_cut = shortened(prose(form.text), limits)
    ending: Ending = "length" if is_cut else getattr(form, "next", "end")
    critiques = _critiques(said, form, text, ending)
    told = of_text(said.tokens) if text else None
    mean, tokens = told or (NO_LOG_PROBABILITY, len(text.split()))
    whole = written(text, **critiques._asdict())
    return Candidate(whole, *critiques, mean, tokens, ending)


def _critiques(said: Said, form: Answer | JudgedAnswer, text: str, ending: Ending) -> _Critiques:
    relevance = support = utility = None
    if ending == "end":
        utility = _probabilities(said, "utility", _UTILITY, str(form.utility))
    if isinstance(form, JudgedAnswer):
        relevance = _probabilities(said, "relevance", _RELEVANCE, form.relevance)
        if text and form.relevance == "relevant":
            support = _probabilities(said, "support", _SUPPORT, form.support)
    return _Critiques(relevance, support, utility)


def _probabilities(said: Said, field: str, names: Mapping[str, str], label: str) -> Probabilities:
    """Return the probabilities that the server told of a field, or else 1 for its label."""
    told = of_labels(said.tokens, field, names)
    if told and names[label] in told:
        return told
    return {token: float(token == names[label]) for token in names.values()}
