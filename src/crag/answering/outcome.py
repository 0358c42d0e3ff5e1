"""Turn a model's reply, quotations, or neither into the final update of the state."""

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from typing_extensions import TypedDict

from crag.answering.attribution import attribute
from crag.answering.citations import validate
from crag.answering.context import numbered
from crag.answering.links import without_links
from crag.answering.model_calls import Reply
from crag.answering.naming import lacking
from crag.correction.provenance import source_within
from crag.events import Event, event
from crag.parts import Attributor, Quotation
from crag.state import AnswerSentence, Certainty, Citation, Quote, State, Strip, Usage
from crag.text.marks import as_mark
from crag.text.markup import PLAIN_TEXT

NOT_FOUND = "I could not find this in the documents."
"""The answer of a run that abstains; the prompt asks the model for the same words."""
UNSURE = "No sure answer in the documents. The closest passages:"
"""The sentence before the passages, where none of them is sure to answer."""
MOST_CLOSEST = 2
"""The most passages after that sentence, and after the reply of a model that found no answer."""
_CLOSEST = "The closest passages:"
DECLINED = "What I found does not answer this."
"""What a generator trained by `crag train generator` writes where no passage answers."""
FOUND_NOTHING = "the model found no answer in the knowledge"
"""Why a run abstains, or quotes, after such a reply; in events."""

_NODE = "generate"
_FENCES = ("```", "~~~")
_CODE_OR_ESCAPE = re.compile(r"(?P<code>(`+|~{3,})(?![`~])[\s\S]*?\2)|\\(?=[!-/:-@\[-`{-~])")
_NOT_SURE = "no passage that was kept is sure to answer the question"


class GenerateUpdate(TypedDict):
    """Written by `generate`; `messages` stays empty unless the question came as one."""

    knowledge: str
    answer: str
    abstained: bool
    certainty: Certainty
    citations: list[Citation]
    further: list[Citation]
    sentences: list[AnswerSentence]
    messages: list[AnyMessage]
    events: list[Event]
    usage: Usage


def declines(text: str) -> bool:
    """Return whether a model wrote that there is no answer, in the words that its prompt gives."""
    said = text.strip().lower()
    return said.startswith(tuple(words.lower().rstrip(".") for words in (NOT_FOUND, DECLINED)))


def from_reply(  # noqa: PLR0913 - what the answer is made of
    state: State,
    reply: Reply,
    knowledge: str,
    strips: Sequence[Strip],
    *,
    question: str,
    cites: bool,
    attributor: Attributor | None = None,
) -> GenerateUpdate:
    """Take the model's text as the answer to a `question`, as it was read, without unknown links.

    Where it `cites`, citations are validated, and its sentences attributed to strips, if there are
    any. An answer counts as uncited if no strip supports most of its sentences, or if no strip that
    it cites has a name of the question; its numbers count only where no `attributor` can tell.
    """
    if declines(reply.text):
        return abstained(state, knowledge, [], FOUND_NOTHING, reply)
    if not cites:
        answer, links = without_links(reply.text, numbered(strips))
        return _update(state, answer, knowledge, [], links_removed(_NODE, links), reply)
    available = numbered(strips)
    checked, _, removed, links = validate(reply.text, available)
    events = links_removed(_NODE, links)
    if removed:
        marks = ", ".join(map(as_mark, removed))
        detail = f"the answer cited {marks}, but there are {len(strips)} strips"
        events.append(event("citation_removed", _NODE, detail, "the citation was removed"))
    if not strips:
        return _update(state, checked, knowledge, [], events, reply)
    answer, citations, sentences, failed = attribute(question, checked, available, attributor)
    unsupported = [one for one in sentences if one["status"] == "unsupported"]
    was_judged = attributor is not None and not failed
    missing = lacking(state, question, (strips[one["number"] - 1] for one in citations))
    problem = ""
    if not citations or (was_judged and 2 * len(unsupported) > len(sentences)):
        problem = "no strip supports most sentences of the model's answer"
    elif missing:
        problem = f"no strip that the model's answer cites has {', '.join(missing)}"
    if problem:
        detail = f"{problem}: {reply.text}"
        events.append(event("uncited_answer", _NODE, detail, "the answer is shown"))
    update = _update(state, answer, knowledge, citations, [*events, *failed], reply)
    return {**update, "sentences": sentences}


def is_uncited(update: GenerateUpdate) -> bool:
    """Return whether strips do not support the model's answer, or are about something else."""
    return any(entry["kind"] == "uncited_answer" for entry in update["events"])


def links_removed(node: str, links: Sequence[str]) -> list[Event]:
    """Return an event with the addresses that were removed from an answer, if there are any."""
    detail = f"the answer linked what no strip holds: {', '.join(links)}"
    return [event("link_removed", node, detail, "the link was removed")] if links else []


def from_quotations(
    state: State,
    quotations: Sequence[Quotation],
    strips: Sequence[Strip],
    events: list[Event],
    *,
    declined: bool = False,
) -> GenerateUpdate:
    """Quote the strips, each quotation followed by its citation, without pictures and HTML.

    Quotations that are not sure, or those after a model `declined`, are the closest passages: they
    are led in as such, and the run abstains.
    """
    quotations = [
        one._replace(text=_as_markdown(one.text, strips[one.strip]["source"]["url"]))
        for one in quotations
    ]
    shown = [quoted for quoted in quotations if not quoted.further]
    further = [quoted for quoted in quotations if quoted.further]
    sure = not declined and all(quoted.sure for quoted in shown)
    answer, links = without_links(quoted_text(shown, apart=not sure), _with_lead_ins(strips))
    events = [*events, *links_removed(_NODE, links)]
    if not sure:
        detail = FOUND_NOTHING if declined else _NOT_SURE
        events.append(event("abstained", _NODE, detail, "show the closest passages"))
        answer = f"{f'{NOT_FOUND} {_CLOSEST}' if declined else UNSURE}\n\n{answer}"
    knowledge = "\n".join(
        f"{as_mark(place)} {strip['text']}" for place, strip in enumerate(strips, start=1)
    )
    update = _update(state, answer, knowledge, _quoted(shown, strips), events, None)
    update["further"] = _quoted(further, strips)
    if not sure:
        update["abstained"], update["certainty"] = True, "unsure"
    return update


def _as_markdown(text: str, url: str) -> str:
    """Double a backslash of plain text that Markdown would drop, as before the dot of a path."""
    if not url.lower().partition("#")[0].endswith(PLAIN_TEXT):
        return text
    return _CODE_OR_ESCAPE.sub(lambda found: found["code"] or "\\\\", text)


def _quoted(quotations: Sequence[Quotation], strips: Sequence[Strip]) -> list[Citation]:
    """Return the citations of the strips that are quoted, with what is quoted of them."""
    available, known = numbered(strips), _with_lead_ins(strips)
    used = sorted({quotation.strip for quotation in quotations})
    for index in used:
        quoted = [quotation for quotation in quotations if quotation.strip == index]
        _show_quotes(available[index], quoted, known[index])
    return [available[index] for index in used]


def _with_lead_ins(strips: Sequence[Strip]) -> list[Citation]:
    """Number strips with what is quoted before them, of which addresses may be shown as well."""
    return numbered([{**one, "text": f"{one.get('before', '')} {one['text']}"} for one in strips])


def quoted_text(quotations: Sequence[Quotation], *, apart: bool = False) -> str:
    """Write short quotations in a row; with one of several lines among them, or `apart`, below."""
    pieces = [
        f"“{_fenced_apart(quotation.text)}” {as_mark(quotation.strip + 1)}"
        for quotation in quotations
    ]
    apart = apart or any("\n" in quoted.text for quoted in quotations)
    return ("\n\n" if apart else " ").join(pieces)


def _fenced_apart(text: str) -> str:
    """Give the fences of code lines of their own, without the marks of the quotation."""
    first, last = text.partition("\n")[0], text.rpartition("\n")[2]
    before = "\n" if first.lstrip().startswith(_FENCES) and "\n" in text else ""
    after = "\n" if last.lstrip().startswith(_FENCES) and "\n" in text else ""
    return f"{before}{text}{after}"


def _show_quotes(citation: Citation, quotations: Sequence[Quotation], known: Citation) -> None:
    """Add to a citation what is quoted of it, and make its source point at the quotations.

    Addresses stay that the `known` citation has.
    """
    source, text = citation["source"], citation["text"]
    placed = [
        (quotation.place, quotation.span, without_links(quotation.text, [known])[0])
        for quotation in quotations
        if quotation.place is not None
    ]
    if not placed:
        return
    citation["quotes"] = [
        Quote(
            start=start,
            end=end,
            position=source_within(source, text, start, end)["position"],
            span=span,
            text=quoted,
        )
        for (start, end), span, quoted in placed
    ]
    start = min(start for (start, _), *_ in placed)
    end = max(end for (_, end), *_ in placed)
    position = source_within(source, text, start, end)["position"]
    citation["source"] = {**source, "position": position}


def abstained(
    state: State, knowledge: str, events: list[Event], reason: str, reply: Reply | None = None
) -> GenerateUpdate:
    """Say that there is no answer, and record why."""
    events = [*events, event("abstained", _NODE, reason, "no answer is given")]
    update = _update(state, NOT_FOUND, knowledge, [], events, reply)
    update["abstained"], update["certainty"] = True, "nothing_found"
    return update


def _update(  # noqa: PLR0913, PLR0917 - one argument for each key that differs
    state: State,
    answer: str,
    knowledge: str,
    citations: list[Citation],
    events: list[Event],
    reply: Reply | None,
) -> GenerateUpdate:
    return GenerateUpdate(
        knowledge=knowledge,
        answer=answer,
        abstained=False,
        certainty="answered",
        citations=citations,
        further=[],
        sentences=[],
        messages=chat_reply(state, answer, citations, reply.message_id if reply else None),
        events=events,
        usage=reply.usage if reply else Usage(),
    )


def chat_reply(
    state: State, answer: str, citations: list[Citation], message_id: str | None = None
) -> list[AnyMessage]:
    """Answer with a message where a message asked; its id is that of the streamed tokens.

    What its marks refer to stands beside it, in `additional_kwargs`.
    """
    messages = state.get("messages") or []
    if not messages or not isinstance(messages[-1], HumanMessage):
        return []
    return [AIMessage(answer, id=message_id, additional_kwargs={"citations": citations})]
