"""The state that flows through the graphs.

All values are plain JSON types, LangChain `Document`s or messages, so a checkpoint, a remote
client, Studio and a notebook all show the same thing.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph.message import add_messages
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from crag.errors import QuestionError
from crag.events import Event
from crag.plain import first_line
from crag.reading import Reading

Action = Literal["correct", "ambiguous", "incorrect"]
"""What a set of documents is judged to be (CRAG, Sec. 4.3), best first. Whatever depends on the
action is an exhaustive `match`, so mypy reports every place that lacks a member."""
ACTIONS: tuple[Action, ...] = get_args(Action)
Outcome = Literal["answered", "likely", "not_found", "nothing_asked"]
"""How a run ended: with an answer; with passages that probably answer; with nothing worth showing;
with a reply to what asks nothing, such as thanks."""
StripKind = Literal["document", "web"]
"""Where a strip is from: a retrieved document, or a page of the web."""


class Source(TypedDict):
    """The source of a strip, precise enough to open it there."""

    id: str
    title: str
    url: str
    """A path or URL; empty when the retriever gave none."""
    position: str
    """The place within the source, such as ``line 41`` or ``page 3``; may be empty."""
    lines: NotRequired[str]
    """The line, page, row, … of the source for each line of the text: see `crag.text.places`."""
    repeats: NotRequired[int]
    """How many of the text's first lines are repeated from elsewhere, as the head of a table is."""
    also: NotRequired[list[dict[str, str]]]
    """Other places of the same text, each with its `source` and `position`."""


class Strip(TypedDict):
    """A knowledge strip: the unit that refinement keeps or drops (CRAG, Sec. 4.4)."""

    text: str
    kind: StripKind
    source: Source
    score: float | None
    """The evaluator's score against the question; None if it was not scored."""
    kept: bool
    reason: str
    """Why it was kept or dropped."""
    reading: NotRequired[Reading]
    """What the evaluator read in it, if it was kept and its whole document was read."""
    before: NotRequired[str]
    """What it needs to be read: the lead-in of its list, the head of its table, its code fence."""
    headings: NotRequired[list[str]]
    """Those that it stands below, the highest first."""


class Quote(TypedDict):
    """A part of a strip that the answer quotes, as offsets into the strip's text."""

    start: int
    end: int
    position: str
    """Its place within the source, as in `Source`."""
    span: tuple[int, int] | None
    """Where in the strip the answer itself stands, if that is within the quotation."""
    text: str
    """What is shown of it: as its readers see it, with the head of its table or list."""


class Citation(TypedDict):
    """One numbered strip that the answer refers to as ``[number]``."""

    number: int
    text: str
    source: Source
    quotes: NotRequired[list[Quote]]
    """What the answer quotes of it, in order."""


SentenceStatus = Literal["cited", "attributed", "unsupported"]
"""A strip supports the sentence, and the model cited one; a strip supports it, and its number was
added (in answers of reflection it is not); no strip supports it, whatever it cites."""


class AnswerSentence(TypedDict):
    """One sentence of a written answer, and whether a strip supports it."""

    start: int
    end: int
    """Offsets in the answer; the numbers at the sentence are within them."""
    strips: list[int]
    """The numbers at it, as in `citations`."""
    status: SentenceStatus


class Thresholds(TypedDict):
    """The thresholds in use; ``lower <= upper``, on the evaluator's own scale (CRAG, Sec. 4.3)."""

    upper: float
    lower: float


class WebPage(TypedDict):
    """A page that the web search found, and what came of it."""

    title: str
    url: str
    snippet: str
    status: Literal["found", "read", "given", "failed"]
    """Only found, so that its snippet is used; fetched; returned with the hit; or not readable."""
    detail: str
    """Why it was not read."""
    paragraphs: int
    text: NotRequired[str]
    """The page's text, if the search service returned it; removed once it is read."""


class Usage(TypedDict, total=False):
    """What a run has spent; the updates of all nodes are summed."""

    llm_calls: int
    evaluator_calls: int
    evaluated_texts: int
    searches: int
    pages: int
    """Pages fetched, whether they could be read or not."""
    web_milliseconds: int
    """Spent on searching and reading, excluding the wait for a human."""
    input_tokens: int
    output_tokens: int


RetrievalAction = Literal["retrieve", "continue", "no_retrieve"]
"""Before a segment: retrieve passages, keep using the last one, or go on without any."""
Ending = Literal["retrieve", "no_retrieve", "continue", "end", "length"]
"""How a segment ended: with one of the three Retrieve tokens, with the end of the text, or at the
limit of tokens."""
Flag = Literal[
    "empty", "cut", "no_passages", "unsure", "constraint_fallback", "repeated_segment",
    "depth_limit", "model_failed",
]  # fmt: skip
"""Something irregular in a reflection, each with a defined result:

- ``empty``: nothing but tokens was generated; such a text never wins against another;
- ``cut``: the token limit was reached before the text ended;
- ``no_passages``: answered without a passage, for lack of one;
- ``unsure``: a quotation that is not sure to answer; alone it is shown as likely to;
- ``constraint_fallback``: hard constraints left nothing, so the soft ranking counts;
- ``repeated_segment``: a segment that says what an earlier one says is left out;
- ``depth_limit``, ``model_failed``: the search ended early, and the best answer so far is returned.
"""


class Choice(TypedDict):
    """Whether to retrieve before one segment, and why."""

    segment: int
    """From 0, which is the only one in short form."""
    hypothesis: int
    """Place in the beam, from 0."""
    action: RetrievalAction
    why: str


class Critique(TypedDict):
    """One candidate: how the model judged it, and what became of it."""

    segment: int
    hypothesis: int
    """Place in the beam of the hypothesis that it continues."""
    passage: int | None
    """Index into the passages of the run; None without a passage."""
    text: str
    """As generated, with tokens."""
    relevance: float | None
    support: float | None
    """0 to 1; None without passage, or where nothing was generated."""
    utility: float
    """-1 to 1."""
    sequence: float
    """0 to 1."""
    total: float
    doubts: list[str]
    """The tokens by which the model objects to passage or text."""
    quoted: bool
    """It is a quotation from a passage that has the question's names."""
    kept: bool
    """Long form: it stayed in the beam. Short form: the same as `chosen`. Poster's rule: it was a
    candidate for the answer."""
    chosen: bool
    """It is part of the answer, or has the same text as one that is."""
    why: str
    flags: list[Flag]


class OfferedPassage(TypedDict):
    """A passage for reflection: a document, or knowledge that CRAG prepared from several."""

    title: str
    text: str
    label: Literal["document", Action, "web"]
    """`document`; knowledge from documents, both or the web, by action; or one `web` piece."""
    grade: Literal["", "high", "medium", "low"]
    """The evaluator's, for the poster's rule; empty otherwise."""
    strips: list[Strip]
    """The strips it was built from, each with its source."""


class Hypothesis(TypedDict):
    """The beginning of an answer, in a beam."""

    context: str
    """All of it as the model wrote it, with tokens, without passages."""
    critiques: list[int]
    """Those of its segments, by index."""
    done: bool
    ending: Ending
    """How the last segment ended."""


class Beam(TypedDict):
    """A beam search between two rounds."""

    depth: int
    """Rounds so far."""
    pool: list[Hypothesis]
    """Best first."""
    prepared: list[OfferedPassage] | None
    """Passages to use at the first retrieval, or at all of them; None: not retrieved yet."""
    flags: list[Flag]


class Reflection(TypedDict, total=False):
    """How an answer with reflection came about; the updates of all nodes are merged."""

    approximation: str
    """How critiques are approximated; empty for a model with reflection tokens."""
    choices: list[Choice]
    """Whether to retrieve before each segment, and why."""
    passages: list[OfferedPassage]
    """The passages offered, without duplicates, in the order that critiques refer to."""
    critiques: list[Critique]
    """The critiques of each candidate, in the order in which they were made."""
    beam: Beam | None
    """The search of the long form, as long as it goes on."""
    answer: str
    """Without reflection tokens; in long form with ``[n]``. Empty if the model failed."""
    raw: str
    """As the model wrote it, with reflection tokens, without passages."""
    cited: list[int]
    """``[n]`` refers to ``passages[cited[n - 1]]``."""
    score: float
    flags: list[Flag]


def add_chat(chat: Any, new: Any) -> Any:
    """Add messages to a chat as `add_messages` does; many clients send null for what is not set.

    Raises:
        QuestionError: one is no message.
    """
    try:
        return add_messages(chat, new or [])
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError) as error:
        form = 'Write each as {"role": "user", "content": "…"}; other roles are assistant, system'
        raise QuestionError(f"`messages` cannot be read: {first_line(error)} {form}") from None


def replace_documents(
    _: list[Document], new: Sequence[Document | Mapping[str, Any]]
) -> list[Document]:
    """Replace the documents by `new` ones, which a client such as Studio sends as plain JSON."""
    return [one if isinstance(one, Document) else Document(**one) for one in new]


def replace_strips(known: list[Strip], new: list[Strip]) -> list[Strip]:
    """Replace the strips of the kinds that the `new` ones have, those of documents first.

    So both branches of Ambiguous write their own, and an edited list replaces the one before it.
    """
    kinds = {strip["kind"] for strip in new}
    strips = [*(strip for strip in known if strip["kind"] not in kinds), *new]
    return sorted(strips, key=lambda strip: strip["kind"] == "web")


def merge_reflection(known: Reflection | None, new: Reflection | None) -> Reflection | None:
    """Replace what is `new`; None clears all."""
    return None if new is None else {**(known or {}), **new}


def add_usage(spent: Usage, new: Usage) -> Usage:
    """Sum counts by name."""
    known, more = cast("Mapping[str, int]", spent), cast("Mapping[str, int]", new)
    counts = {name: known.get(name, 0) + count for name, count in more.items()}
    return cast("Usage", {**spent, **counts})


@with_config(ConfigDict(use_attribute_docstrings=True))
class InputState(TypedDict, total=False):
    """The input: a question, or a chat whose last message is the question."""

    question: str
    """The question; optional if `messages` are given."""
    messages: Annotated[list[AnyMessage], add_chat]
    """A chat instead of a question; its last message is the question."""


class State(InputState, total=False):
    """The whole state of a run.

    `messages` becomes the whole conversation, with the answer last; `question` is the question as
    it is read: self-contained in a chat, without courtesies, options and typing errors. A rewrite
    for the web never changes it.
    """

    asked: str
    """The question as it was asked."""
    documents: Annotated[list[Document], replace_documents]
    """At most k documents, best first; `score` and `reading` in their metadata are the grade's."""
    thresholds: Thresholds | None
    """Those in use; None, like `action`, if nothing was graded."""
    action: Action | None
    """What the documents are judged to be: correct, ambiguous or incorrect."""
    query: str
    """The query for the web search."""
    pages: list[WebPage]
    """What the search found, in the order in which it is read, and what came of each page."""
    strips: Annotated[list[Strip], replace_strips]
    """All strips, kept or not: those of the documents, then those of the web."""
    answer: str
    """The answer with its citations, or a sentence that says that there is none."""
    outcome: Outcome | None
    """answered, likely, not_found or nothing_asked; None as long as the run has not ended."""
    citations: list[Citation]
    """The strips that the answer refers to."""
    sentences: list[AnswerSentence]
    """The sentences of a written answer, each with the strips that support it."""
    events: Annotated[list[Event], operator.add]
    """What went wrong or was decided on the way, in order."""
    usage: Annotated[Usage, add_usage]
    """Calls, tokens and pages so far."""
    reflection: Annotated[Reflection | None, merge_reflection]
    """Choices, passages and critiques of a model that reflects; None in other graphs."""


def known_action(value: object) -> Action:
    """Return `value` if it is an action; users who edit the state can write anything.

    Raises:
        ValueError: it is none.
    """
    if value not in ACTIONS:
        raise ValueError(f"action cannot be {value!r}: allowed are {', '.join(ACTIONS)}")
    return value


def strips_of_kind(state: Mapping[str, Any], kind: StripKind) -> list[Strip]:
    """Return the strips of one kind, in order."""
    return [strip for strip in state.get("strips") or [] if strip["kind"] == kind]


def reflected(state: Mapping[str, Any]) -> Reflection:
    """Return what reflection has written so far."""
    return cast("Reflection", state.get("reflection") or {})


STANDS_ALONE = "stands_alone"
"""Marks a message whose question came as `question`, and so leans on no other one."""


def spoken(state: Mapping[str, Any]) -> list[AnyMessage]:
    """Return what the human and the assistant said, in order."""
    messages = state.get("messages") or []
    return [one for one in messages if isinstance(one, HumanMessage | AIMessage)]


def is_follow_up(state: Mapping[str, Any]) -> bool:
    """Say whether the question came as a message after others, so that it may lean on them."""
    messages = spoken(state)
    return len(messages) > 1 and not messages[-1].additional_kwargs.get(STANDS_ALONE)
