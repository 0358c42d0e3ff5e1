"""Reflection by prompting: any chat model fills in the critiques that it has no tokens for."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, create_model

from crag.answering.forms import Call, FormAsker, Said
from crag.parts import (
    Candidate,
    ChatModel,
    Continuation,
    Decision,
    Passage,
    Prefix,
    Probabilities,
    SegmentLimits,
)
from crag.prompts import PACKAGED, Prompts
from crag.reflection.backends.candidates import (
    LONGEST_PASSAGE,
    candidate_of,
    nothing,
    prose,
    shortened,
)
from crag.reflection.cleaning import cleaned
from crag.reflection.driver import spend
from crag.reflection_tokens import (
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
from crag.state import Ending
from crag.text.marks import in_our_format, without_marks
from crag.text.thoughts import without_thoughts
from crag.text.untrusted import neutral

_TOKENS: Mapping[str, Mapping[str, str]] = {
    "retrieval": {"yes": RETRIEVAL, "no": NO_RETRIEVAL, "continue": CONTINUE},
    "relevance": {"relevant": RELEVANT, "irrelevant": IRRELEVANT},
    "support": {"fully": FULLY, "partially": PARTIALLY, "none": NO_SUPPORT},
    "utility": {str(grade): token for grade, token in enumerate(UTILITY, start=1)},
}
_LABELS: Mapping[str, Iterable[str]] = {
    **_TOKENS, "next": ("retrieve", "continue", "no_retrieve", "end"),
}  # fmt: skip
_WORD = re.compile(r"[^\W_]\w*")
_PLAIN = BeforeValidator(lambda label: "".join(_WORD.findall(str(label).casefold())[:1]))
"""The label alone, of what models write around it: "[Relevant]", "fully supported", "5/5"."""


def _form(*fields: str) -> type[BaseModel]:
    """Return a form; its fields come in the order in which Self-RAG's tokens do."""
    kinds: dict[str, Any] = {"text": str}
    for field, labels in _LABELS.items():
        kinds[field] = Annotated[Literal[tuple(labels)], _PLAIN]
    declared: dict[str, Any] = {field: (kinds[field], ...) for field in fields}
    return create_model("".join(map(str.title, fields)), **declared)


FORMS: Mapping[str, type[BaseModel]] = {
    "reflect_retrieve": _form("retrieval"),
    "reflect_next": _form("retrieval"),
    "reflect_answer_alone": _form("text", "utility"),
    "reflect_segment_alone": _form("text", "utility", "next"),
    "reflect_answer": _form("relevance", "text", "support", "utility"),
    "reflect_segment": _form("relevance", "text", "support", "utility", "next"),
}
"""What is to be filled in, by the prompt that asks for it."""


class PromptedReflection:
    """Ask a chat model for text and critiques together, in one call for each continuation.

    The critiques are those of Self-RAG's critic. Each is a field of JSON in the reply, whose label
    has the probability 1; the mean log-probability is 0.

    A passage judged irrelevant has no IsSup. IsUse is given where a text ends the answer, as a
    model with the tokens does. A text of more words than the segment may have tokens is cut; the
    model itself is not limited, since half a form cannot be read. All calls of a round run at the
    same time, whatever their prefixes.
    """

    approximation = "a chat model without reflection tokens was asked for IsRel, IsSup and IsUse"

    def __init__(self, model: ChatModel, *, prompts: Prompts = PACKAGED) -> None:
        self._asker, self._prompts = FormAsker(model), prompts

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Ask whether to retrieve; at the beginning of an answer "continue" is not offered.

        Raises:
            ModelError: a call failed, or its reply is malformed.
        """
        calls = [
            self._call("reflect_next" if one.answered else "reflect_retrieve", one, one.passage)
            for one in prefixes
        ]
        decisions: list[Decision] = []
        for reply in self._asked(calls):
            if reply.form is None:
                raise self._asker.failure(reply)
            emitted = _TOKENS["retrieval"][reply.form.retrieval]
            decisions.append(Decision(_probabilities(reply.form, "retrieval"), emitted))
        return decisions

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Ask for all continuations at the same time.

        A call that failed, was refused or gave a malformed reply makes an empty candidate without
        critiques.

        Raises:
            ModelError: this happened to every call.
        """
        kind = "reflect_answer" if limits.whole_answer else "reflect_segment"
        calls = [
            self._call(kind if passage else f"{kind}_alone", prefix, passage)
            for prefix, passage in continuations
        ]
        return [
            _candidate(reply, limits, has_passage=continuation.passage is not None)
            for reply, continuation in zip(self._asked(calls), continuations, strict=True)
        ]

    def _asked(self, calls: Sequence[Call]) -> list[Said]:
        replies = self._asker.ask_all(calls)
        for reply in replies:
            spend(reply.reply.usage)
        if replies and all(reply.form is None for reply in replies):
            raise self._asker.failure(replies[0])
        return replies

    def _call(self, name: str, prefix: Prefix, passage: Passage | None) -> Call:
        """Fence what was written so far and the passage; neither can close its tags."""
        before = cleaned(prefix.answered).replace("<", "‹")
        parts = [f"<written>\n{before}\n</written>"] if before else []
        if passage is not None:
            text = neutral(f"{passage.title}\n{passage.text[:LONGEST_PASSAGE]}").strip()
            parts.append(f"<passage>\n{text}\n</passage>")
        values = {"question": neutral(prefix.instruction), "knowledge": "\n\n".join(parts)}
        return Call(FORMS[name], self._prompts.render(name, **values))


def _candidate(said: Said, limits: SegmentLimits, *, has_passage: bool) -> Candidate:
    form = said.form
    if form is None:
        return nothing({} if has_passage else None)
    written = without_marks(in_our_format(without_thoughts(form.text), {1}))
    text, is_cut = shortened(prose(written), limits)
    ending: Ending = "length" if is_cut or said.reply.cut else getattr(form, "next", "end")
    is_judged = has_passage and text and form.relevance == "relevant"
    return candidate_of(
        text,
        relevance=_probabilities(form, "relevance") if has_passage else None,
        support=_probabilities(form, "support") if is_judged else None,
        utility=_probabilities(form, "utility") if ending == "end" else None,
        ending=ending,
        sure=not said.reply.cut,
    )


def _probabilities(form: Any, field: str) -> Probabilities:
    """Return the probability 1 for the label of a field."""
    labels = _TOKENS[field]
    return {token: float(token == labels[getattr(form, field)]) for token in labels.values()}
