"""Turn a model's reply, quotations, or neither into the final update of the state."""

from collections.abc import Sequence
from itertools import pairwise

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from typing_extensions import TypedDict

from crag.answering.attribution import Attributed, attribute
from crag.answering.citations import validate
from crag.answering.context import numbered
from crag.answering.links import without_links
from crag.answering.model_calls import Reply
from crag.answering.quoting import MOST_LIKELY
from crag.correction.evidence import about, lacking
from crag.correction.provenance import source_within
from crag.correction.strips import score_of
from crag.events import Event, EventKind, event
from crag.parts import Attributor, Quotation, Quoter
from crag.runtime.calls import Attempt
from crag.settings import Settings
from crag.state import AnswerSentence, Citation, Outcome, Quote, State, Strip, Usage, spoken
from crag.text.marks import as_mark
from crag.text.units import parts_of
from crag.text.words import bare, names_in, names_lacking
from crag.wording import with_subject

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
WITH_SUBJECT = "complete it by the question that it follows"
"""The fallback of an event after which a rule has completed the question."""


class AnswerUpdate(TypedDict):
    """Written by the node that answers."""

    answer: str
    outcome: Outcome
    citations: list[Citation]
    sentences: list[AnswerSentence]
    messages: list[AnyMessage]
    events: list[Event]
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
) -> tuple[AnswerUpdate, str]:
    """Take the model's text as the answer to a `question`, and say what is wrong with it.

    Links that no strip holds go. Where it `cites`, citations are validated, and its sentences
    attributed to strips, if there are any: see `unsupported`.
    """
    available = numbered(strips)
    if not cites:
        answer, links = without_links(reply.text, available)
        return answer_update(answer, [], links_removed(_NODE, links), reply=reply), ""
    answer, removed, links = validate(reply.text, available)
    events = links_removed(_NODE, links)
    if reply.cut:
        detail = f"the model's reply ends before its end ({reply.cut}): {reply.text}"
        fallback = "its unfinished sentence is left out, and the answer is only likely"
        events.append(event("reply_cut", _NODE, detail, fallback))
    if removed:
        marks = ", ".join(map(as_mark, removed))
        detail = f"the answer cited {marks}, but there are {len(strips)} strips"
        events.append(event("citation_removed", _NODE, detail, "the citation was removed"))
    outcome: Outcome = "likely" if reply.cut else "answered"
    if not strips:
        return answer_update(answer, [], events, outcome=outcome, reply=reply), ""
    told = attribute(question, answer, available, attributor)
    update = answer_update(
        told.answer, told.citations, [*events, *told.events], sentences=told.sentences,
        outcome="likely" if told.is_misstated else outcome, reply=reply,
    )  # fmt: skip
    cited = [strips[one["number"] - 1] for one in told.citations]
    problem = unsupported(question, told, cited)
    return update, f"{problem}: {reply.text}" if problem else ""


def unsupported(question: str, told: Attributed, cited: Sequence[Strip]) -> str:
    """Return why the strips that it cites do not bear out an answer as a whole, or nothing.

    None of them supports most of its sentences, where these were judged, or none has a name of the
    question.
    """
    count = sum(one["status"] == "unsupported" for one in told.sentences)
    if not cited or (told.is_judged and 2 * count > len(told.sentences)):
        return "no strip supports most sentences of the model's answer"
    missing = lacking(question, cited)
    return f"no strip that the model's answer cites has {', '.join(missing)}" if missing else ""


def links_removed(node: str, links: Sequence[str]) -> list[Event]:
    """Return an event with the addresses that were removed from an answer, if there are any."""
    detail = f"the answer linked what no strip holds: {', '.join(links)}"
    return [event("link_removed", node, detail, "the link was removed")] if links else []


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
    quotations: Sequence[Quotation], strips: Sequence[Strip]
) -> tuple[str, list[Citation], list[str]]:
    """Return an answer of quotations, without pictures and HTML, its citations, and lost links."""
    known = numbered([{**one, "text": f"{about(one)} {one['text']}"} for one in strips])
    answer, links = without_links(quoted_text(quotations), known)
    citations = list[Citation]()
    for citation in numbered(strips):
        source, text = citation["source"], citation["text"]
        quotes = list[Quote]()
        for one in quotations:
            if one.strip == citation["number"] - 1:
                start, end = one.place or (0, len(text))
                position = source_within(source, text, start, end)["position"]
                said, _ = without_links(one.text, known)
                quote = Quote(start=start, end=end, position=position, span=one.span, text=said)
                quotes.append(quote)
        if quotes:
            whole = min(one["start"] for one in quotes), max(one["end"] for one in quotes)
            position = source_within(source, text, *whole)["position"]
            citation["source"], citation["quotes"] = {**source, "position": position}, quotes
            citations.append(citation)
    return answer, citations, links


def abstained(
    events: list[Event], reason: str, reply: Reply | None = None, node: str = _NODE
) -> AnswerUpdate:
    """Say that there is no answer, and record why."""
    events = [*events, event("abstained", node, reason, "no answer is given")]
    return answer_update(NOT_FOUND, [], events, outcome="not_found", reply=reply)


def answer_update(  # noqa: PLR0913 - what it writes
    answer: str,
    citations: list[Citation],
    events: list[Event],
    *,
    outcome: Outcome = "answered",
    sentences: Sequence[AnswerSentence] = (),
    reply: Reply | None = None,
) -> AnswerUpdate:
    """Return the update of the state with an answer, and with what the `reply` cost."""
    message = answer_message(answer, citations, reply.message_id if reply else None)
    return AnswerUpdate(
        answer=answer, outcome=outcome, citations=citations, sentences=[*sentences],
        messages=[message], events=events, usage=reply.usage if reply else Usage(),
    )  # fmt: skip


def answer_message(
    answer: str, citations: Sequence[Citation], message_id: str | None = None
) -> AnyMessage:
    """Return the answer as a message; its id is that of the streamed tokens.

    What its marks refer to stands beside it, in `additional_kwargs`.
    """
    beside = {"citations": list(citations)}
    return AIMessage(answer, id=message_id, additional_kwargs=beside)


def quoted_or_abstained(  # noqa: PLR0913 - what to quote, and why
    state: State,
    quoter: Quoter | None,
    strips: Sequence[Strip],
    *,
    events: Sequence[Event] = (),
    problem: tuple[EventKind, object] | None = None,
    reply: Reply | None = None,
    node: str = "generate",
) -> AnswerUpdate:
    """Quote the strips, or abstain; a `problem` of the model is the kind and detail of its event.

    Where the documents hold the answer, since the action is Correct, the best strip is quoted if
    nothing else is: nothing found would deny it.
    """
    quotations, events = list[Quotation](), [*events]
    with Attempt("quoter") as attempt:
        if quoter is not None and strips:
            given = quoter.quote(state["question"], strips)
            quotations = [one for one in given if strips[one.strip]]  # Or it is no quotation.
        if not quotations and strips and state.get("action") == "correct":
            quotations = [_best_of(strips)]
    is_sure = bool(quotations) and _answers(state, quotations[0], strips)
    if problem is not None:
        kind, detail = problem
        is_sure = is_sure and (kind != "model_declined" or quotations[0].span is not None)
        events.append(event(kind, node, detail, "quote the strips" if quotations else "abstain"))
    if attempt.error is not None:
        events.append(event("evaluator_failed", node, attempt.error, "nothing is quoted"))
    if not quotations:
        return abstained(events, why_nothing(state, strips), reply, node)
    answer, citations, links = _quoted(quotations[: None if is_sure else MOST_LIKELY], strips)
    outcome: Outcome = "answered" if is_sure else "likely"
    events += links_removed(node, links)
    return answer_update(answer, citations, events, outcome=outcome, reply=reply)


def _answers(state: State, best: Quotation, strips: Sequence[Strip]) -> bool:
    """Say whether the best quotation is the answer; otherwise it is likely to be.

    It is if it is sure, or holds a span of its own where the action is Correct, and is not about
    another thing of the kind that the question names.
    """
    strip = strips[best.strip]
    is_sure = best.sure or (state.get("action") == "correct" and best.span is not None)
    named = "\n".join([best.text, best.lead, about(strip)])
    return (
        is_sure
        and not names_lacking(state["question"], named)
        and not _has_names_apart(state["question"], best)
        and not _repeats_an_answer(state, best)
    )


def _has_names_apart(question: str, best: Quotation) -> bool:
    """Say whether names that stand together in a question stand in different parts only."""
    parts = [best.text[part.start : part.end] for part in parts_of(best.text)]
    return any(
        all(any(name in part for part in parts) for name in pair)
        and not any(pair[0] in part and pair[1] in part for part in parts)
        for pair in pairwise(names_in(question))
        if " ".join(pair) in question
    )


def _best_of(strips: Sequence[Strip]) -> Quotation:
    """Return the strip with the highest score, as it is read; one with words of its own first."""
    says = [any(part.kind != "heading" for part in parts_of(one["text"])) for one in strips]
    best = max(range(len(strips)), key=lambda at: (says[at], score_of(strips[at])))
    text = strips[best]["text"]
    return Quotation(text.strip(), best, score_of(strips[best]), (0, len(text)), sure=False)


def why_nothing(state: State, strips: Sequence[Strip] = ()) -> str:
    """Return why there is no answer, where no model wrote one."""
    if strips:
        return "nothing in the strips that were kept answers the question"
    action = state.get("action")
    return f"no knowledge was left after the action {action}" if action else "there is no knowledge"


def completed(asked: str, state: State, settings: Settings) -> str:
    """Return a follow-up completed by the question before, where it leans on that, by a rule."""
    earlier = [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]
    question = with_subject(asked, earlier)
    return question if len(question) <= settings.max_question_characters else asked


def _repeats_an_answer(state: State, quotation: Quotation) -> bool:
    """Say whether a quotation answered the question before: it is no sure answer to the next."""
    if not any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", [])):
        return False
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    answers = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    return any(quoted in bare(text) for text in answers)
