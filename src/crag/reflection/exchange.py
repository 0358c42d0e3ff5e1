"""How the algorithms ask for what they need, and the two drivers that answer them.

Short and long form are generators: they yield batches of independent requests and are sent the
answers, in order. Nothing in them waits, so that the same code serves sync and async callers, nodes
of a graph, and tests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Hashable, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from crag.errors import ModelError
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Passage,
    Prefix,
    ReflectionBackend,
    SegmentLimits,
    continuations,
)
from crag.reflection.records import Choice, Critique


class Asked(NamedTuple):
    """What is to be answered."""

    instruction: str
    """The instruction field of the prompt: see `crag.reflection.prompt_format`."""
    query: str
    """What passages are searched with."""
    closed: bool = False
    """Short form: the answers form a closed set, so scores of identical ones are summed."""
    passages: tuple[Passage, ...] | None = None
    """Passages that are there already; None: they are asked for when they are needed."""
    decided: Choice | None = None
    """Whether to retrieve before the first segment, where that was decided already."""

    def prefix(self, answered: str = "", passage: Passage | None = None) -> Prefix:
        """Return what the next segment continues, after what was answered so far."""
        bare = "" if self.query == self.instruction else self.query
        return Prefix(self.instruction, answered, passage, bare)


class Decide(NamedTuple):
    """Ask for a `Decision`."""

    prefix: Prefix


class Generate(NamedTuple):
    """Ask for one `Candidate` for each passage."""

    prefix: Prefix
    passages: tuple[Passage | None, ...]
    limits: SegmentLimits


class Retrieve(NamedTuple):
    """Ask for passages, best first."""

    query: str


class Judged(NamedTuple):
    """Tell what was decided and judged since the last one; the answer is not looked at."""

    choices: tuple[Choice, ...]
    critiques: tuple[Critique, ...]


Request = Decide | Generate | Retrieve | Judged
Result = TypeVar("Result")
Answer = TypeVar("Answer")
Steps = Generator[Sequence[Request], list[Any], Result]
"""An algorithm: yields batches of requests, is sent their answers, returns its result. A
`ModelError` that a request met is thrown into it."""
Searcher = Callable[[str], Sequence[Passage]]
AsyncSearcher = Callable[[str], Awaitable[Sequence[Passage]]]
Watcher = Callable[[Judged], None]


def run(
    steps: Steps[Result],
    backend: ReflectionBackend,
    search: Searcher,
    watch: Watcher | None = None,
) -> Result:
    """Drive an algorithm to its end.

    The decisions of a batch are one call of the back end, and so are all candidates with the same
    limits, whatever their prefixes: one call for each round of a beam search. What else is asked
    for is answered one after the other.

    A `search` that can fail returns no passages then; `watch` is told what was decided and judged.

    Raises:
        ModelError: the back end failed, and the algorithm had nothing to go on with.
    """
    progress = _Progress(steps)
    while progress.calls is not None:
        try:
            answers = [_answers(call, backend, search, watch) for call in progress.calls]
        except ModelError as error:
            progress.fail(error)
        else:
            progress.send(answers)
    return progress.result


async def arun(
    steps: Steps[Result],
    backend: ReflectionBackend,
    search: AsyncSearcher,
    watch: Watcher | None = None,
) -> Result:
    """Do as `run`, with the calls for a batch side by side."""
    progress = _Progress(steps)
    while progress.calls is not None:
        waiting = [_aanswers(call, backend, search, watch) for call in progress.calls]
        # All are awaited even if one fails, so that none is left running.
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        failures.sort(key=lambda failure: isinstance(failure, ModelError))
        if not failures:
            progress.send(answers)
        elif isinstance(failures[0], ModelError):
            progress.fail(failures[0])
        else:
            raise failures[0]
    return progress.result


class _Progress(Generic[Result]):
    """A generator, the calls it waits for, and its result once it has ended."""

    def __init__(self, steps: Steps[Result]) -> None:
        self._steps = steps
        self.result: Result
        self.calls: list[list[Request]] | None = None
        """Its requests; those of one list are answered together."""
        self._places: list[list[int]] = []
        self._advance(lambda: next(steps))

    def send(self, answers: Sequence[Any]) -> None:
        """Hand over the answers, call by call."""
        replies = _in_order(self._places, answers)
        self._advance(lambda: self._steps.send(replies))

    def fail(self, error: ModelError) -> None:
        self._advance(lambda: self._steps.throw(error))

    def _advance(self, step: Callable[[], Sequence[Request]]) -> None:
        try:
            requests = step()
        except StopIteration as end:
            self.calls, self.result = None, end.value
        else:
            self._places = _together(requests)
            self.calls = [[requests[place] for place in places] for places in self._places]


def _together(requests: Sequence[Request]) -> list[list[int]]:
    """Return the places of the requests that one call answers, call by call."""
    calls: dict[Hashable, list[int]] = {}
    for place, request in enumerate(requests):
        match request:
            case Decide():
                calls.setdefault(Decide, []).append(place)
            case Generate(limits=limits):
                calls.setdefault(limits, []).append(place)
            case _:
                calls[place] = [place]
    return list(calls.values())


def _answers(
    requests: Sequence[Request], backend: ReflectionBackend, search: Searcher, watch: Watcher | None
) -> list[Any]:
    """Answer requests by one call."""
    match requests[0]:
        case Decide():
            prefixes = _prefixes(requests)
            return _one_each("decisions", backend.decide(prefixes), "prefixes", len(prefixes))
        case Generate(limits=limits):
            return _split(requests, backend.candidates(_continuations(requests), limits))
        case Retrieve(query):
            return [list(search(query))]
        case Judged() as told:
            return [watch(told) if watch else None]


async def _aanswers(
    requests: Sequence[Request],
    backend: ReflectionBackend,
    search: AsyncSearcher,
    watch: Watcher | None,
) -> list[Any]:
    match requests[0]:
        case Decide():
            prefixes = _prefixes(requests)
            decisions = await backend.adecide(prefixes)
            return _one_each("decisions", decisions, "prefixes", len(prefixes))
        case Generate(limits=limits):
            return _split(requests, await backend.acandidates(_continuations(requests), limits))
        case Retrieve(query):
            return [list(await search(query))]
        case Judged() as told:
            return [watch(told) if watch else None]


def _in_order(calls: Sequence[Sequence[int]], answers: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the answers of all calls in the order of the requests."""
    placed = {
        place: answer
        for places, found in zip(calls, answers, strict=True)
        for place, answer in zip(places, found, strict=True)
    }
    return [placed[place] for place in range(len(placed))]


def _prefixes(requests: Sequence[Request]) -> list[Prefix]:
    return [request.prefix for request in requests if isinstance(request, Decide)]


def _continuations(requests: Sequence[Request]) -> list[Continuation]:
    return [
        one
        for request in requests
        if isinstance(request, Generate)
        for one in continuations(request.prefix, request.passages)
    ]


def _split(requests: Sequence[Request], candidates: list[Candidate]) -> list[list[Candidate]]:
    """Give each request its candidates."""
    counts = [len(request.passages) for request in requests if isinstance(request, Generate)]
    left = iter(_one_each("candidates", candidates, "passages", sum(counts)))
    return [list(islice(left, count)) for count in counts]


def _one_each(answers: str, found: list[Answer], asked: str, count: int) -> list[Answer]:
    if len(found) != count:
        message = f"it returned {len(found)} {answers} for {count} {asked}"
        raise ModelError("reflection", "failed", message)
    return found
