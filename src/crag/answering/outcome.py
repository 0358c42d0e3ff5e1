"""Turn a model's reply, quotations, or neither into the final update of the state."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage
from typing_extensions import TypedDict

from crag.answering.attribution import Attributed, attribute
from crag.answering.citations import validate
from crag.answering.context import numbered
from crag.answering.links import without_links
from crag.answering.model_calls import Reply
from crag.correction.naming import about, lacking
from crag.correction.provenance import source_within
from crag.events import Event, event
from crag.parts import Attributor, Quotation
from crag.state import AnswerSentence, Citation, Outcome, Quote, Strip, Usage
from crag.text.marks import as_mark

NOT_FOUND = "I could not find this in the documents."
"""The answer of a run that abstains; the prompt asks the model for the same words."""
DECLINED = "What I found does not answer this."
"""What a generator trained by `crag train generator` writes where no passage answers."""
FOUND_NOTHING = "the model found no answer in the knowledge"
"""Why a run abstains, or quotes, after such a reply; in events."""
DISAGREE = "Two documents disagree."
"""Above quotations that give two values for one thing."""
_NODE = "generate"
_BLOCKS = ("```", "~~~", "|", "- ", "#")
"""What a quotation begins with that Markdown reads at the beginning of a line alone."""


class AnswerUpdate(TypedDict):
    """Written by the node that answers."""

    answer: str
    outcome: Outcome
    citations: list[Citation]
    sentences: list[AnswerSentence]
    messages: list[AnyMessage]
    events: list[Event]


class GenerateUpdate(AnswerUpdate):
    """Written by `generate`."""

    usage: Usage


def declines(text: str) -> bool:
    """Return whether a model wrote that there is no answer, in the words that its prompt gives."""
    said = text.strip().lower()
    return said.startswith(tuple(words.lower().rstrip(".") for words in (NOT_FOUND, DECLINED)))


def from_reply(
    reply: Reply,
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
        return abstained([], FOUND_NOTHING, reply)
    if not cites:
        answer, links = without_links(reply.text, numbered(strips))
        return _update(answer, [], links_removed(_NODE, links), reply)
    available = numbered(strips)
    checked, removed, links = validate(reply.text, available)
    events = links_removed(_NODE, links)
    if reply.cut:
        detail = f"the model's reply ends before its end ({reply.cut}): {reply.text}"
        fallback = "its unfinished sentence is left out, and the answer is only likely"
        events.append(event("reply_cut", _NODE, detail, fallback))
    if removed:
        marks = ", ".join(map(as_mark, removed))
        detail = f"the answer cited {marks}, but there are {len(strips)} strips"
        events.append(event("citation_removed", _NODE, detail, "the citation was removed"))
    if not strips:
        return _update(checked, [], events, reply)
    told = attribute(question, checked, available, attributor)
    if problem := _unsupported(question, told, strips, attributor):
        detail = f"{problem}: {reply.text}"
        events.append(event("uncited_answer", _NODE, detail, "the answer is shown"))
    update = _update(told.answer, told.citations, [*events, *told.events], reply)
    if told.misstated:
        update["outcome"] = "likely"
    return {**update, "sentences": told.sentences}


def _unsupported(
    question: str, told: Attributed, strips: Sequence[Strip], attributor: Attributor | None
) -> str:
    """Return why the strips do not bear out an answer as a whole, or nothing."""
    unsupported = [one for one in told.sentences if one["status"] == "unsupported"]
    is_judged = told.misstated or (attributor is not None and not told.events)
    if not told.citations or (is_judged and 2 * len(unsupported) > len(told.sentences)):
        problem = "no strip supports most sentences of the model's answer"
        said = ", ".join(told.misstated)
        return f"{problem}, nor says {said} of what was asked" if said else problem
    missing = lacking(question, (strips[one["number"] - 1] for one in told.citations))
    return f"no strip that the model's answer cites has {', '.join(missing)}" if missing else ""


def is_uncited(update: GenerateUpdate) -> bool:
    """Return whether strips do not support the model's answer, or are about something else."""
    return any(entry["kind"] == "uncited_answer" for entry in update["events"])


def links_removed(node: str, links: Sequence[str]) -> list[Event]:
    """Return an event with the addresses that were removed from an answer, if there are any."""
    detail = f"the answer linked what no strip holds: {', '.join(links)}"
    return [event("link_removed", node, detail, "the link was removed")] if links else []


def from_quotations(
    quotations: Sequence[Quotation],
    strips: Sequence[Strip],
    events: list[Event],
    reply: Reply | None = None,
) -> GenerateUpdate:
    """Quote the strips, each quotation followed by its citation, without pictures and HTML.

    The outcome is that of the first quotation, which answers, or is likely to.
    """
    known = numbered([{**one, "text": f"{about(one)} {one['text']}"} for one in strips])
    answer, links = without_links(quoted_text(quotations), known)
    events = [*events, *links_removed(_NODE, links)]
    update = _update(answer, _quoted(quotations, strips, known), events, reply)
    update["outcome"] = "answered" if quotations[0].sure else "likely"
    return update


def quoted_text(quotations: Sequence[Quotation]) -> str:
    """Write short quotations in a row; with one of several lines among them, each by itself.

    What names the subject stands above a quotation; a table, a list or code stands by itself.
    """
    pieces = [DISAGREE] if sum(one.disagrees for one in quotations) > 1 else []
    lead = ""
    for one in quotations:
        text, is_long = one.text, "\n" in one.text
        above = f"{one.lead}\n\n" if one.lead and one.lead != lead else ""
        before = "\n\n" if is_long and text.startswith(_BLOCKS) else ""
        last = text.rpartition("\n")[2].lstrip()
        after = "\n\n" if is_long and last.startswith(_BLOCKS) else ""
        pieces.append(f"{above}“{before}{text}{after}” {as_mark(one.strip + 1)}")
        lead = one.lead
    return ("\n\n" if any("\n" in piece for piece in pieces) else " ").join(pieces)


def _quoted(
    quotations: Sequence[Quotation], strips: Sequence[Strip], known: Sequence[Citation]
) -> list[Citation]:
    """Return the citations of the strips that are quoted, with what is quoted of them.

    Their sources point at the quotations, which keep the addresses that the `known` ones have.
    """
    citations = []
    for citation, whole in zip(numbered(strips), known, strict=True):
        own = [one for one in quotations if one.strip + 1 == citation["number"]]
        source, text = citation["source"], citation["text"]
        if placed := [(one, one.place) for one in own if one.place is not None]:
            citation["quotes"] = [
                Quote(
                    start=start,
                    end=end,
                    position=source_within(source, text, start, end)["position"],
                    span=one.span,
                    text=without_links(one.text, [whole])[0],
                )
                for one, (start, end) in placed
            ]
            first, last = (min(at for _, (at, _) in placed), max(to for _, (_, to) in placed))
            position = source_within(source, text, first, last)["position"]
            citation["source"] = {**source, "position": position}
        citations += [citation] if own else []
    return citations


def abstained(events: list[Event], reason: str, reply: Reply | None = None) -> GenerateUpdate:
    """Say that there is no answer, and record why."""
    events = [*events, event("abstained", _NODE, reason, "no answer is given")]
    update = _update(NOT_FOUND, [], events, reply)
    update["outcome"] = "not_found"
    return update


def _update(
    answer: str, citations: list[Citation], events: list[Event], reply: Reply | None
) -> GenerateUpdate:
    return GenerateUpdate(
        answer=answer,
        outcome="likely" if reply and reply.cut else "answered",
        citations=citations,
        sentences=[],
        messages=[answer_message(answer, citations, reply.message_id if reply else None)],
        events=events,
        usage=reply.usage if reply else Usage(),
    )


def answer_message(
    answer: str, citations: Sequence[Citation], message_id: str | None = None
) -> AnyMessage:
    """Return the answer as a message; its id is that of the streamed tokens.

    What its marks refer to stands beside it, in `additional_kwargs`.
    """
    beside = {"citations": list(citations)}
    return AIMessage(answer, id=message_id, additional_kwargs=beside)
