"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel

from crag.parts import ChatModel
from crag.prompts import render
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Decision,
    Ending,
    Passage,
    Prefix,
    Probabilities,
    SegmentLimits,
)
from crag.reflection.backends.asking import Call, FormAsker, Said
from crag.reflection.backends.forms import (
    Answer,
    JudgedAnswer,
    JudgedSegment,
    NextRetrieval,
    Retrieval,
    Segment,
)
from crag.reflection.backends.log_probabilities import of_labels, of_text
from crag.reflection.backends.segments import NO_LOG_PROBABILITY, nothing, prose, shortened, written
from crag.reflection.cleaning import cleaned
from crag.reflection.scoring import argmax
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
from crag.text.untrusted import neutral

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
    """Ask a chat model for text and critiques together, in one call for each continuation.

    The critiques are those of Self-RAG's critic. Each is a field of structured output where the
    model is a LangChain chat model that has it, and of JSON in the reply otherwise, or if
    `structured` is off (for servers that refuse a schema). Probabilities are those that the server
    tells of its tokens (``ChatOpenAI(logprobs=True, top_logprobs=5)``), and without them 1 and 0;
    the mean log-probability is then 0.

    A passage judged irrelevant has no IsSup. IsUse is given where a text ends the answer, as a
    model with the tokens does. A text of more words than the segment may have tokens is cut; the
    model itself is not limited, since half a form is none.

    At most `concurrency` calls of one round run at a time, whatever their prefixes, and equal ones
    are made once; `crag.reflection.spending` counts each.

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

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Ask whether to retrieve; at the beginning of an answer "continue" is no choice.

        Raises:
            ModelError: a call failed, or its reply is malformed.
        """
        forms = [_decision_form(prefix) for prefix in prefixes]
        return [self._decision(said) for said in self._said(forms)]

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Do as `decide` without blocking the event loop."""
        forms = [_decision_form(prefix) for prefix in prefixes]
        return [self._decision(said) for said in await self._asaid(forms)]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Ask for all continuations at the same time.

        A call that failed, was refused or gave a malformed reply makes an empty candidate without
        critiques.

        Raises:
            ModelError: this happened to every call.
        """
        forms = [_candidate_form(one, limits) for one in continuations]
        return _candidates(self._said(forms), continuations, limits)

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates` without blocking the event loop."""
        forms = [_candidate_form(one, limits) for one in continuations]
        return _candidates(await self._asaid(forms), continuations, limits)

    def _said(self, forms: "Sequence[_Form]") -> list[Said]:
        distinct = list(dict.fromkeys(forms))
        said = self._asker.ask_all([form.call() for form in distinct])
        return [said[distinct.index(form)] for form in forms]

    async def _asaid(self, forms: "Sequence[_Form]") -> list[Said]:
        distinct = list(dict.fromkeys(forms))
        said = await self._asker.aask_all([form.call() for form in distinct])
        return [said[distinct.index(form)] for form in forms]

    def _decision(self, said: Said) -> Decision:
        if not isinstance(said.form, Retrieval | NextRetrieval):
            raise self._asker.failure(said)
        shares = _probabilities(said, "retrieval", _RETRIEVE, said.form.retrieval)
        return Decision(shares, argmax("retrieve", shares))


class _Form(NamedTuple):
    """A form to be filled in, and what the prompt for it says."""

    kind: type[BaseModel]
    question: str
    knowledge: str

    def call(self) -> Call:
        prompt = render(_PROMPTS[self.kind], question=self.question, knowledge=self.knowledge)
        return Call(self.kind, prompt)


def _decision_form(prefix: Prefix) -> _Form:
    kind = NextRetrieval if prefix.answered else Retrieval
    return _form(kind, prefix, prefix.passage)


def _candidate_form(continuation: Continuation, limits: SegmentLimits) -> _Form:
    if continuation.passage is None:
        return _form(Answer if limits.whole_answer else Segment, *continuation)
    return _form(JudgedAnswer if limits.whole_answer else JudgedSegment, *continuation)


def _form(kind: type[BaseModel], prefix: Prefix, passage: Passage | None) -> _Form:
    return _Form(kind, neutral(prefix.instruction), _material(prefix, passage))


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


def _candidates(
    replies: Sequence[Said], continuations: Sequence[Continuation], limits: SegmentLimits
) -> list[Candidate]:
    return [
        _candidate(said, one.passage, limits)
        for said, one in zip(replies, continuations, strict=True)
    ]


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
