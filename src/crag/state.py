"""The state that flows through the graphs.

All values are plain JSON types, LangChain `Document`s or messages, so a checkpoint, a remote
client, Studio and a notebook all show the same thing.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar, cast, get_args

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import add_messages
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from crag.errors import QuestionError
from crag.events import Event
from crag.plain import said
from crag.reading import Reading
from crag.tasks import Posed

Action = Literal["correct", "ambiguous", "incorrect"]
"""What a set of documents is judged to be (CRAG, Sec. 4.3), best first. Whatever depends on the
action is an exhaustive `match` or a `ByAction`, so mypy reports every place that lacks a member."""
ACTIONS: tuple[Action, ...] = get_args(Action)
Outcome = Literal["answered", "likely", "not_found", "nothing_asked"]
"""How a run ended: with an answer; with passages that probably answer; with nothing worth showing,
which is `abstained`; with a reply to what asks nothing, such as thanks."""
RetrievalAction = Literal["retrieve", "continue", "no_retrieve"]
"""Before a segment: retrieve passages, keep using the last one, or go on without any."""
Ending = Literal["retrieve", "no_retrieve", "continue", "end", "length"]
"""How a segment ended: with one of the three Retrieve tokens, with the end of the text, or at the
limit of tokens."""
Flag = Literal[
    "relevance_missing", "support_missing", "utility_missing", "retrieve_missing", "member_missing",
    "no_support_token", "no_utility_token", "no_sequence_score", "no_retrieval_score", "empty",
    "cut", "merged", "invented_passage", "no_passages", "duplicate_passages", "passages_used_up",
    "not_generated", "unsure", "constraint_fallback", "repeated_segment", "all_removed",
    "depth_limit", "token_limit", "time_limit", "model_failed",
]  # fmt: skip
"""Something irregular in a reflection, each with a defined result:

- ``…_missing``: no token of a group was seen, or (member) one of its tokens was not seen;
- ``no_…_token``: the model wrote no critique of that kind, which counts 0;
- ``no_sequence_score``: the log-probability is not a number, which counts 0;
- ``no_retrieval_score``: scored without a passage: sequence and utility only;
- ``empty``: nothing but tokens was generated; such a text never wins against another;
- ``cut``: the token limit was reached before the text ended;
- ``merged``: another hypothesis with the same text scored at least as high;
- ``invented_passage``: the model went on to make up a passage, which is removed;
- ``no_passages``, ``passages_used_up``: answered without a passage, for lack of one;
- ``not_generated``: nothing was generated with the passage: IsRel and IsSup None, the rest 0;
- ``unsure``: a quotation that is not sure to answer; alone it is shown as likely to;
- ``constraint_fallback``: hard constraints left nothing, so the soft ranking counts;
- ``repeated_segment``, ``all_removed``: assembly left out a segment, or the whole answer;
- ``…_limit``, ``model_failed``: the search ended early, and the best answer so far is returned.
"""


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
    source: Source
    score: float | None
    """The evaluator's score against the original question; None if it was not scored."""
    kept: bool
    reason: str
    """Why it was kept or dropped."""
    reading: NotRequired[Reading]
    """What the evaluator read in it, if it read the whole document; its score is what the document
    and its rank say of all strips in it."""
    before: NotRequired[str]
    """What it needs to be read: the sentence that leads its list in, the head of the table or the
    fence of the code that it is cut from."""
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
    """Offset of its first character in the answer."""
    end: int
    """Offset after its last one; the numbers at the sentence are within it."""
    strips: list[int]
    """The numbers at it, as in `citations`."""
    status: SentenceStatus


class Thresholds(TypedDict):
    """The thresholds in use; ``lower <= upper``, on the evaluator's own scale (CRAG, Sec. 4.3)."""

    upper: float
    lower: float


class FoundHit(TypedDict):
    """One result of the web search."""

    title: str
    url: str
    snippet: str
    text: str
    """Text of the page if the service returned it; `read_pages` removes it."""


class PageRecord(TypedDict):
    """The outcome of one page that was found."""

    url: str
    title: str
    status: Literal["read", "given", "failed"]
    """Fetched, returned by the search service, or not read."""
    detail: str
    """Why it was not read."""
    paragraphs: int
    fetched_bytes: int


class Choice(TypedDict):
    """Whether to retrieve before one segment, and why."""

    segment: int
    """From 0, which is the only one in short form."""
    hypothesis: int
    """Place in the beam, from 0."""
    action: RetrievalAction
    ratio: float | None
    """What was compared with delta; None if the mode alone decided, or if it is infinite."""
    emitted: str
    probabilities: dict[str, float]
    """Of the Retrieve tokens that were seen, not normalised."""
    why: str
    flags: list[Flag]


class Critique(TypedDict):
    """One candidate: how the model judged it, and what became of it."""

    segment: int
    hypothesis: int
    """Place in the beam of the hypothesis that it continues."""
    passage: int | None
    """Index into the passages of the run; None without a passage."""
    title: str
    text: str
    """As generated, with tokens."""
    probabilities: dict[str, dict[str, float]]
    """Normalised, by group; groups that were not seen are absent."""
    relevance: float | None
    """0 to 1; None without passage, or where nothing was generated."""
    support: float | None
    """0 to 1; None without passage, or where nothing was generated."""
    utility: float
    """-1 to 1."""
    sequence: float
    """0 to 1."""
    total: float
    kept: bool
    """Long form: it stayed in the beam. Short form: the same as `chosen`. Poster's rule: it was a
    candidate for the answer."""
    chosen: bool
    """It is part of the answer, or has the same text as one that is."""
    why: str
    flags: list[Flag]
    quotation_score: NotRequired[float]
    """Of its best quotation, on the evaluator's scale, where the text is quoted and the passage has
    the question's names."""


class PassageRecord(TypedDict):
    """A passage that was offered to the model."""

    title: str
    text: str


class SegmentRecord(TypedDict):
    """One segment of a hypothesis."""

    text: str
    """With tokens, but without the Retrieve token and the passage that came before it."""
    shown: str
    """Without tokens."""
    passage: int | None
    score: float
    critique: int
    """Index of its critique."""
    is_irrelevant: bool
    """The model judged its passage irrelevant."""
    is_unsupported: bool
    """The model judged it unsupported by its passage."""


class HypothesisRecord(TypedDict):
    """One hypothesis of the beam."""

    before: str
    """The context of the last segment."""
    segments: list[SegmentRecord]
    done: bool
    ending: Ending
    """How the last segment ended."""


class SearchRecord(TypedDict):
    """A beam search between two rounds; choices, critiques and passages have keys of their own."""

    depth: int
    """Rounds so far."""
    pool: list[HypothesisRecord]
    """The beam, best first."""
    static: list[int] | None
    """Indices of the passages that serve for every segment; None: not retrieved yet."""
    flags: list[Flag]
    tokens: int
    seconds: float
    """Spent so far."""
    ended: Flag | None
    """What ended the search before its depth."""
    over: bool
    """No round will follow."""


class OfferedPassage(PassageRecord):
    """A passage for reflection: a document, or knowledge that CRAG prepared from several."""

    label: Literal["document", Action, "web"]
    """`document`, or the kind of knowledge: from documents, from the web, from both, or one piece
    from the web."""
    grade: Literal["", "high", "medium", "low"]
    """The evaluator's, for the poster's rule; empty otherwise."""
    strips: list[Strip]
    """The strips it was built from, each with its source."""


class Reflection(TypedDict):
    """How an answer with reflection was produced, besides its choices and critiques."""

    answer: str
    """Without reflection tokens; in long form with ``[n]``, which refer to passages here."""
    raw: str
    """As the model wrote it, with reflection tokens, without passages."""
    cited: list[int]
    """``[n]`` refers to ``passages[cited[n - 1]]``."""
    score: float
    flags: list[Flag]
    tokens: int
    """Tokens generated, for all candidates together."""


class Usage(TypedDict, total=False):
    """What a run has spent; the updates of all nodes are summed."""

    llm_calls: int
    evaluator_calls: int
    evaluated_texts: int
    searches: int
    pages: int
    """Pages fetched, whether they could be read or not."""
    page_bytes: int
    web_milliseconds: int
    """Spent on searching and reading, excluding the wait for a human."""
    input_tokens: int
    output_tokens: int
    fresh: int
    """Always 0: only in updates whose counts replace those before them. A key and no class, because
    the updates of a killed run come back from a checkpointer as plain dictionaries."""


class FollowUp(TypedDict):
    """A follow-up question of a chat that was made self-contained."""

    message_id: str
    """The id of the message that asked it."""
    asked: str
    """The question as it was asked."""


Value = TypeVar("Value")


class ByAction(TypedDict, Generic[Value]):
    """A value for each action."""

    correct: Value
    ambiguous: Value
    incorrect: Value


def fresh_usage(spent: Usage) -> Usage:
    """Return counts that replace those before them, as of a new question on the same thread."""
    return {**spent, "fresh": 0}


def extend_events(recorded: list[Event], new: list[Event] | None) -> list[Event]:
    """Append `new` events, or clear the old ones if it is None, as at a new question.

    Nodes of the user's own may record events of kinds of their own.

    Raises:
        InvalidUpdateError: one is not an event; clients that edit the state can write anything.
    """
    # A marker such as a class is lost where a checkpointer keeps what was written.
    if new is None:
        return []
    if not isinstance(new, list) or not all(map(_is_event, new)):
        names = ", ".join(Event.__annotations__)
        raise InvalidUpdateError(f"events must be a list, of which each has the texts {names}")
    return [*recorded, *new]


def _is_event(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), str) for name in Event.__annotations__
    )


def known_action(value: object) -> Action:
    """Return `value` if it is an action.

    Raises:
        InvalidUpdateError: it is not; users who edit the state, as in Studio, can write anything.
    """
    for action in ACTIONS:
        if value == action:
            return action
    message = f"action cannot be {value!r}: allowed are {', '.join(ACTIONS)}"
    raise InvalidUpdateError(message)


def replace_action(_: Action | None, new: object) -> Action | None:
    """Replace the action by `new`, an action or None.

    Raises:
        InvalidUpdateError: `new` is neither.
    """
    return None if new is None else known_action(new)


def add_chat(chat: Any, new: Any) -> Any:
    """Add messages to a chat as `add_messages` does; clients send them in many forms.

    Many send null for what is not set.

    Raises:
        QuestionError: one is no message.
    """
    try:
        return chat if new is None else add_messages(chat, new)
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError) as error:
        problem = said(error).partition("\n")[0].rstrip(". ")
        message = (
            f"`messages` cannot be read: {problem}. Write each as "
            '{"role": "user", "content": "…"}; other roles are assistant and system'
        )
        raise QuestionError(message) from None


def replace_documents(
    _: list[Document], new: Sequence[Document | Mapping[str, Any]]
) -> list[Document]:
    """Replace the documents by `new` ones; clients of a server, such as Studio, send plain JSON.

    Raises:
        InvalidUpdateError: one is not a document.
    """
    try:
        return [one if isinstance(one, Document) else Document(**one) for one in new]
    except (TypeError, ValueError) as error:
        message = f"documents must each have a `page_content` and may have `metadata`: {error}"
        raise InvalidUpdateError(message) from None


def add_usage(spent: Usage, new: Usage) -> Usage:
    """Sum counts by name, or replace them if the new ones are `fresh_usage`.

    Raises:
        InvalidUpdateError: one is no number.
    """
    if not isinstance(new, Mapping):
        raise InvalidUpdateError(f"usage cannot be {new!r}: allowed are names and their numbers")
    counts = {} if "fresh" in new else dict(spent)
    for name, count in new.items():
        if name == "fresh":
            continue
        if not isinstance(count, int | float):
            raise InvalidUpdateError(f"usage.{name} cannot be {count!r}: allowed are numbers")
        counts[name] = cast("float", counts.get(name, 0)) + count
    return cast("Usage", counts)


@with_config(ConfigDict(use_attribute_docstrings=True))
class InputState(TypedDict, total=False):
    """The input: a question, or a chat whose last message is the question."""

    question: str
    """The question; optional if `messages` are given."""
    messages: Annotated[list[AnyMessage], add_chat]
    """A chat instead of a question; its last message is the question."""


class State(InputState, total=False):
    """The whole state of a run; a rewrite never overwrites `question`."""

    follow_up: FollowUp | None
    """The original question, if `question` was made self-contained from a chat."""
    posed: Posed | None
    """The question without its options or courtesies and without typing errors, and the options;
    None where it is as it was asked. Read it with `TaskProfile.posed`, which falls back to
    splitting `question`."""

    documents: Annotated[list[Document], replace_documents]
    """At most k documents, best first."""
    scores: list[float]
    """The evaluator's score of each document, in the order of `documents`."""
    readings: list[Reading]
    """What the evaluator read in each document; empty if it only scores."""
    thresholds: Thresholds
    action: Annotated[Action | None, replace_action]
    """None, like `thresholds`, if nothing was graded."""
    query: str
    """The query for the web search."""
    confirms: bool
    """Whether to ask a human before the search; kept here because LangGraph does not keep the
    settings of an interrupted run."""
    refused: bool
    """Whether a human refused the web search."""
    hits: list[FoundHit]
    """The search results, in the order in which they are read."""
    pages: list[PageRecord]
    """The outcome of each page, in the order of the hits."""
    internal: list[Strip]
    """All strips of the retrieved documents, kept or not, in document order."""
    external: list[Strip]
    """All strips from the web, kept or not, in the order of the hits; `read_pages` writes them
    unscored, `select` scored."""
    approximation: str
    """How critiques are approximated; empty for a model with reflection tokens."""
    choices: list[Choice]
    """Whether to retrieve before each segment, and why."""
    passages: list[OfferedPassage]
    """The passages for reflection, without duplicates, in the order that critiques refer to."""
    critiques: list[Critique]
    """The critiques of each candidate, in the order in which they were made."""
    search: SearchRecord | None
    """The saved beam search between two segments of the long form."""
    reflection: Reflection | None
    knowledge: str
    """The kept strips as passed to the model."""
    answer: str
    abstained: bool
    outcome: Outcome | None
    """None as long as the run has not ended."""
    citations: list[Citation]
    further: list[Citation]
    """What could be quoted besides the answer, which is short; shown on request."""
    sentences: list[AnswerSentence]
    """Those of a written answer, without headings, tables and code; empty where it is quoted, where
    there is none, and in tasks whose answers have no citations."""
    events: Annotated[list[Event], extend_events]
    usage: Annotated[Usage, add_usage]
