"""How the algorithms ask for what they need, and the two drivers that answer them.

Short and long form are generators: they yield batches of independent requests and are sent the
answers, in order. Nothing in them waits, so that the same code serves sync and async callers, nodes
of a graph, and tests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from crag.errors import ModelError
from crag.reflection.backend import Candidate, Passage, Prefix, ReflectionBackend, SegmentLimits
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
    """Drive an algorithm to its end, one request after the other.

    A `search` that can fail returns no passages then; `watch` is told what was decided and judged.

    Raises:
        ModelError: the back end failed, and the algorithm had nothing to go on with.
    """
    progress = _Progress(steps)
    while progress.requests is not None:
        try:
            replies = [_answer(one, backend, search, watch) for one in progress.requests]
        except ModelError as error:
            progress.fail(error)
        else:
            progress.send(replies)
    return progress.result


async def arun(
    steps: Steps[Result],
    backend: ReflectionBackend,
    search: AsyncSearcher,
    watch: Watcher | None = None,
) -> Result:
    """Do as `run`, with the requests of a batch side by side."""
    progress = _Progress(steps)
    while progress.requests is not None:
        waiting = [_aanswer(one, backend, search, watch) for one in progress.requests]
        # All are awaited even if one fails, so that none is left running.
        replies = await asyncio.gather(*waiting, return_exceptions=True)
        failures = [reply for reply in replies if isinstance(reply, BaseException)]
        failures.sort(key=lambda failure: isinstance(failure, ModelError))
        if not failures:
            progress.send(replies)
        elif isinstance(failures[0], ModelError):
            progress.fail(failures[0])
        else:
            raise failures[0]
    return progress.result


class _Progress(Generic[Result]):
    """A generator, the requests it waits for, and its result once it has ended."""

    def __init__(self, steps: Steps[Result]) -> None:
        self._steps = steps
        self.result: Result
        self.requests: Sequence[Request] | None = None
        self._advance(lambda: next(steps))

    def send(self, replies: list[Any]) -> None:
        self._advance(lambda: self._steps.send(replies))

    def fail(self, error: ModelError) -> None:
        self._advance(lambda: self._steps.throw(error))

    def _advance(self, step: Callable[[], Sequence[Request]]) -> None:
        try:
            self.requests = step()
        except StopIteration as end:
            self.requests, self.result = None, end.value


def _answer(
    request: Request, backend: ReflectionBackend, search: Searcher, watch: Watcher | None
) -> Any:
    match request:
        case Decide(prefix):
            return backend.decide(prefix)
        case Generate(prefix, passages, limits):
            return _one_each(request, backend.candidates(prefix, passages, limits))
        case Retrieve(query):
            return list(search(query))
        case Judged():
            return watch(request) if watch else None


async def _aanswer(
    request: Request, backend: ReflectionBackend, search: AsyncSearcher, watch: Watcher | None
) -> Any:
    match request:
        case Decide(prefix):
            return await backend.adecide(prefix)
        case Generate(prefix, passages, limits):
            return _one_each(request, await backend.acandidates(prefix, passages, limits))
        case Retrieve(query):
            return list(await search(query))
        case Judged():
            return watch(request) if watch else None


def _one_each(request: Generate, candidates: list[Candidate]) -> list[Candidate]:
    if len(candidates) != len(request.passages):
        message = f"it returned {len(candidates)} candidates for {len(request.passages)} passages"
        raise ModelError("reflection", "failed", message)
    return candidates
