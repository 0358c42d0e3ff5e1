"""How an algorithm of Self-RAG is run: its requests, who answers them, and what a node records.

Algorithms (short form, beam search, graded loop) are generators. They yield batches of independent
requests and receive the answers in order, so one implementation serves sync and async callers,
graph nodes and tests::

    node ─ ReflectionNode.run ─► Driver.run ─► arun ◄── requests ── algorithm
                                                │   ─── answers ──►
                               back end, retriever, stream
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.config import get_stream_writer
from typing_extensions import TypedDict

from crag.correction.provenance import offered_document
from crag.errors import ModelError
from crag.events import Event, event
from crag.parts import (
    Passage,
    Prefix,
    ReflectionBackend,
    SegmentLimits,
    continuations,
)
from crag.plain import said
from crag.reflection.spending import Spending, counting
from crag.runtime.attempt import Attempt, options_of
from crag.runtime.replies import (
    approximation_of,
    candidates_of,
    decisions_of,
    documents_of,
)
from crag.runtime.waiting import call, together
from crag.settings import Settings
from crag.state import (
    Choice,
    Critique,
    Flag,
    OfferedPassage,
    PassageRecord,
    Reflection,
    State,
    Usage,
    reflected,
)


class Asked(NamedTuple):
    """What an algorithm is to answer."""

    instruction: str
    """The instruction field of the prompt: see `crag.reflection.prompt_format`."""
    query: str
    """The search query for passages."""
    closed: bool = False
    """Short form: the answers form a closed set, so scores of identical ones are summed."""
    passages: tuple[Passage, ...] | None = None
    """Passages retrieved before; None: the algorithm requests them when it needs them."""
    decided: Choice | None = None
    """Whether to retrieve before the first segment, if that was decided before."""

    def prefix(self, answered: str = "", passage: Passage | None = None) -> Prefix:
        """Return what the next segment continues, after what was answered so far."""
        bare = "" if self.query == self.instruction else self.query
        return Prefix(self.instruction, answered, passage, bare)


class AskDecision(NamedTuple):
    """Request a `Decision`."""

    prefix: Prefix


class AskCandidates(NamedTuple):
    """Request one `Candidate` for each passage."""

    prefix: Prefix
    passages: tuple[Passage | None, ...]
    limits: SegmentLimits


class AskPassages(NamedTuple):
    """Request passages, best first."""

    query: str


class Judged(NamedTuple):
    """Report what was decided and judged since the last report; the answer is ignored."""

    choices: tuple[Choice, ...]
    critiques: tuple[Critique, ...]


class ReflectionOutcome(TypedDict):
    """The answer of an algorithm, and how it came about; fields as in `Reflection`."""

    answer: str
    raw: str
    cited: list[int]
    score: float
    flags: list[Flag]
    tokens: int
    passages: list[PassageRecord]
    """Each passage once, in the order in which it first came."""
    choices: list[Choice]
    critiques: list[Critique]


class Offered:
    """The passages of a run, each once, in the order in which they first came."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._passages: list[Passage] = []

    def add(self, passages: Sequence[Passage]) -> list[int]:
        """Return the index of each passage, without repetitions.

        Passages are the same if title and text are, up to white space.
        """
        return list(dict.fromkeys(self._place(passage) for passage in passages))

    def __getitem__(self, index: int | None) -> Passage | None:
        return None if index is None else self._passages[index]

    def numbered(self, index: int | None) -> tuple[int, Passage] | None:
        """Return a passage with its index."""
        return None if index is None else (index, self._passages[index])

    def records(self) -> list[PassageRecord]:
        """Return all passages as plain JSON."""
        return [PassageRecord(title=p.title, text=p.text) for p in self._passages]

    def _place(self, passage: Passage) -> int:
        key = (" ".join(passage.title.split()), " ".join(passage.text.split()))
        if key not in self._places:
            self._places[key] = len(self._passages)
            self._passages.append(passage)
        return self._places[key]


Request = AskDecision | AskCandidates | AskPassages | Judged
Result = TypeVar("Result")
Steps = Generator[Sequence[Request], list[Any], Result]
"""An algorithm: yields batches of requests, receives their answers, returns its result. If a
request fails with a `ModelError`, the error is raised at its ``yield``."""
AsyncSearcher = Callable[[str], Awaitable[Sequence[Passage]]]
Watcher = Callable[[Judged], None]
Clock = Callable[[], float]
"""Returns seconds, as `time.monotonic` does."""


async def arun(
    steps: Steps[Result],
    backend: ReflectionBackend,
    search: AsyncSearcher,
    watch: Watcher | None = None,
) -> Result:
    """Run an algorithm to its end.

    All decisions of a batch are one call of the back end, and so are all candidates with the same
    limits, whatever their prefixes: one call for each round of a beam search. Other requests are
    answered each by a call of its own. If `search` can fail, it returns no passages then; `watch`
    receives what was decided and judged.

    Raises:
        ModelError: the back end failed, and the algorithm could not continue without it.
    """
    step: Callable[[], Sequence[Request]] = partial(next, steps)
    while True:
        try:
            requests = step()
        except StopIteration as end:
            result: Result = end.value
            return result
        places = _together(requests)
        calls = [[requests[place] for place in of_call] for of_call in places]
        try:
            answers = await together([_answers(each, backend, search, watch) for each in calls])
        except ModelError as error:
            step = partial(steps.throw, error)
        else:
            placed = dict(zip(chain(*places), chain(*answers), strict=True))
            step = partial(steps.send, [placed[place] for place in range(len(placed))])


def _together(requests: Sequence[Request]) -> list[list[int]]:
    """Return the places of the requests that one call answers, call by call."""
    calls: dict[Hashable, list[int]] = {}
    for place, request in enumerate(requests):
        match request:
            case AskDecision():
                calls.setdefault(AskDecision, []).append(place)
            case AskCandidates(limits=limits):
                calls.setdefault(limits, []).append(place)
            case _:
                calls[place] = [place]
    return list(calls.values())


async def _answers(
    requests: Sequence[Request],
    backend: ReflectionBackend,
    search: AsyncSearcher,
    watch: Watcher | None,
) -> list[Any]:
    """Answer requests by one call."""
    match requests[0]:
        case AskDecision():
            prefixes = [request.prefix for request in requests if isinstance(request, AskDecision)]
            with _model_errors():
                decisions = await call(backend.decide, backend.adecide, prefixes)
                return decisions_of(decisions, len(prefixes))
        case AskCandidates(limits=limits):
            each = [
                continuations(request.prefix, request.passages)
                for request in requests
                if isinstance(request, AskCandidates)
            ]
            asked = list(chain.from_iterable(each))
            with _model_errors():
                found = await call(backend.candidates, backend.acandidates, asked, limits)
                left = iter(candidates_of(found, len(asked)))
                return [list(islice(left, len(part))) for part in each]
        case AskPassages(query):
            return [list(await search(query))]
        case Judged() as judged:
            return [watch(judged) if watch else None]


@contextmanager
def _model_errors() -> Iterator[None]:
    """Turn every failure of a back end into a `ModelError`, which algorithms can handle."""
    with Attempt("reflection") as attempt:
        yield
    error = attempt.error
    if isinstance(error, ModelError):
        raise error
    if error is not None:
        detail = f"{type(error).__name__}: {said(error)}"
        raise ModelError("reflection", "failed", detail) from None


class Reflected(NamedTuple):
    """The result of running an algorithm within a node."""

    result: Any
    """None if the model failed."""
    found: list[OfferedPassage]
    """Passages that the algorithm retrieved."""
    events: list[Event]
    spending: Spending


class Driver:
    """Run algorithms with one back end and, where they search themselves, one retriever.

    If the back end fails and the algorithm cannot continue, there is no result, and an event whose
    fallback is `without`. A vector store's retriever is asked for `Settings.k`.
    """

    def __init__(
        self,
        backend: ReflectionBackend,
        node: str,
        *,
        retriever: BaseRetriever | None = None,
        without: str = "abstain",
    ) -> None:
        self._backend, self._node = backend, node
        self._retriever, self._without = retriever, without

    @property
    def approximation(self) -> str:
        """How the back end approximates critiques; empty for a model with the tokens."""
        return approximation_of(self._backend)

    async def run(self, steps: Callable[[], Steps[Result]], settings: Settings) -> Reflected:
        """Run an algorithm; what it judges is written to the stream of the graph."""
        searches = _Searches(self._retriever, self._node, settings)
        result = None
        with counting() as spending:
            try:
                result = await arun(steps(), self._backend, searches.search, _stream)
            except ModelError as error:
                searches.events.append(event("model_failed", self._node, error, self._without))
        return Reflected(result, searches.found, searches.events, spending)


class _Searches:
    """The searches of one run; one that fails finds nothing, and is recorded as an event."""

    def __init__(self, retriever: BaseRetriever | None, node: str, settings: Settings) -> None:
        self._retriever, self._node, self._settings = retriever, node, settings
        self.found: list[OfferedPassage] = []
        self.events: list[Event] = []

    async def search(self, query: str) -> list[Passage]:
        documents: list[Document] = []
        retriever = self._retriever
        with Attempt("retriever") as attempt:
            if retriever is not None:
                options = options_of(retriever, self._settings)
                reply = await call(retriever.invoke, retriever.ainvoke, query, **options)
                documents = documents_of(reply, self._settings.k)
        if attempt.error is not None:
            fallback = "go on without new passages"
            self.events.append(event("retrieval_failed", self._node, attempt.error, fallback))
        kept = [document for document in documents if document.page_content.strip()]
        offered = [offered_document(document, place) for place, document in enumerate(kept)]
        self.found += offered
        return [passage_of(passage) for passage in offered]


def _stream(judged: Judged) -> None:
    """Write what was judged to the stream of mode ``custom``."""
    choices, critiques = list(judged.choices), list(judged.critiques)
    get_stream_writer()({"judged": {"choices": choices, "critiques": critiques}})


class ReflectUpdate(TypedDict):
    """Written by the nodes of all algorithms; without an `answer` while a beam search goes on."""

    reflection: Reflection
    events: list[Event]
    usage: Usage


class ReflectionNode(ABC):
    """A node that runs one algorithm; subclasses say which."""

    def __init__(
        self, backend: ReflectionBackend, node: str, retriever: BaseRetriever | None = None
    ) -> None:
        self._driver = Driver(backend, node, retriever=retriever)

    async def run(self, state: State, settings: Settings) -> ReflectUpdate:
        """Run the algorithm."""
        driven = await self._driver.run(lambda: self.steps(state, settings), settings)
        return self.update(state, driven)

    @abstractmethod
    def steps(self, state: State, settings: Settings) -> Steps[Any]:
        """Return the algorithm for the question and the passages of `state`."""

    def update(self, state: State, driven: Reflected) -> ReflectUpdate:
        """Return the update for an `ReflectionOutcome`; without a result there is no reflection."""
        outcome: ReflectionOutcome | None = driven.result
        known = [*(reflected(state).get("passages") or []), *driven.found]
        reflection = Reflection(
            approximation=self._driver.approximation,
            choices=outcome["choices"] if outcome else reflected(state).get("choices") or [],
            passages=in_order(outcome["passages"], known) if outcome else known,
            critiques=outcome["critiques"] if outcome else [],
            search=None,
        )
        if outcome:
            reflection |= _answer_of(outcome)
        return ReflectUpdate(
            reflection=reflection, events=driven.events, usage=driven.spending.usage
        )


def asked_of(state: State, settings: Settings) -> Asked:
    """Return what an algorithm is to answer, with the passages and the decision in `state`.

    If nothing was retrieved because retrieval was decided against, a later segment may search.
    """
    profile, kept = settings.profile, reflected(state)
    choices, passages = kept.get("choices"), kept.get("passages")
    posed = profile.posed(state)
    if not passages and choices and choices[0]["action"] != "retrieve":
        passages = None
    return Asked(
        instruction=profile.instruction_for(posed["question"], posed["options"]),
        query=posed["question"],
        closed=profile.closed,
        passages=None if passages is None else tuple(map(passage_of, passages)),
        decided=choices[0] if choices else None,
    )


def passage_of(record: PassageRecord) -> Passage:
    """Return a passage as a model reads it."""
    return Passage(record["title"], record["text"])


def in_order(
    records: Sequence[PassageRecord], known: Sequence[OfferedPassage]
) -> list[OfferedPassage]:
    """Return what is known of each passage, in the order in which an algorithm counts them."""
    by_text = {passage_of(passage): passage for passage in reversed(known)}
    return [by_text[passage_of(record)] for record in records]


def _answer_of(outcome: ReflectionOutcome) -> Reflection:
    return Reflection(
        answer=outcome["answer"],
        raw=outcome["raw"],
        cited=outcome["cited"],
        score=outcome["score"],
        flags=outcome["flags"],
        tokens=outcome["tokens"],
    )
