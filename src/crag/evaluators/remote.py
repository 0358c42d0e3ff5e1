"""An evaluator behind HTTP: any service that speaks `crag.evaluators.contract`.

Its address is the user's own configuration, so it may be of this machine or of a private network.
What it replies is not trusted: redirects are not followed, sizes are bounded, and every number is
checked.
"""

import math
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from crag.correction.scoring import LOWEST, split_title
from crag.errors import EvaluatorError, ReplyError
from crag.evaluators.circuit import Circuit
from crag.evaluators.contract import (
    MOST_CHARACTERS,
    MOST_PASSAGES,
    About,
    AskedPassage,
    EvaluationRequest,
    Readings,
    Scores,
)
from crag.events import note
from crag.parts import Evaluator, Passage
from crag.plain import problems
from crag.reading import Reading
from crag.runtime.replies import readings_of
from crag.state import Thresholds

ATTEMPTS = 3
"""The most attempts at one request."""
SECONDS = 10.0
"""Default for the longest time that one request may take."""
LONGEST_WAIT = 2.0
"""Most seconds between two requests; there is no second one if the service asks for more."""
_LEAST_BYTES, _BYTES_FOR_CHARACTER = 2**20, 16
"""A reading has two numbers for each word at most; scores are shorter."""
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_SHOWN = 200
_Reply = TypeVar("_Reply", bound=BaseModel)
_Answer = TypeVar("_Answer", Scores, Readings)


class PassingError(EvaluatorError):
    """A failure that may be over soon; `wait` is what the service asks for, in seconds."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(message)


class RemoteEvaluator:
    """Ask the service at `url` for scores; see `RemoteReader` for one that reads.

    A request that fails for a while (no connection, a time-out, status 429 or 5xx, a reply that is
    none) is sent again, at most `ATTEMPTS` times with growing waits. After five such failures in a
    row the circuit opens, and the service is left alone for half a minute. Both are noted in the
    run. Thresholds are those of the evaluator that judged last in this thread. Thread-safe; the
    passages of one question are one request, and the service joins those of several.

    Raises, in every method:
        EvaluatorError: the service cannot be used; the message names its address.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        seconds: float = SECONDS,
        circuit: Circuit | None = None,
    ) -> None:
        self.url = checked_url(url)
        self._seconds = seconds
        self._circuit = circuit or Circuit()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(timeout=seconds, limits=_LIMITS, trust_env=False)
        weakref.finalize(self, self._client.close)
        self._judged = threading.local()
        self._known: About | None = None

    @property
    def about(self) -> About:
        """How the service describes itself: in its last reply in this thread, or else asked now."""
        about: About | None = getattr(self._judged, "about", None) or self._known
        if about is None:
            about = self._known = self._sent("about", None, About)
        return about

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds that the served evaluator was calibrated with."""
        return self.about.limits

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the served evaluator reads; empty if unknown."""
        return frozenset(self.about.languages)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score for each text; ``title // text`` is read by `split_title`."""
        return self.score_passages(question, [split_title(text) for text in texts])

    def score_passages(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return one score for each passage; an empty one is not sent."""
        answers = self._answers("score", question, passages, Scores)
        received = (score for answer in answers for score in answer.scores)
        scores = [next(received) if passage.text.strip() else LOWEST for passage in passages]
        return [math.nan if score is None else score for score in scores]

    def verify(self) -> None:
        """Ask the service about itself now rather than on first use."""
        self._known = self._sent("about", None, About)

    def _answers(
        self, what: str, question: str, passages: Sequence[Passage], form: type[_Answer]
    ) -> Iterator[_Answer]:
        """Ask about all passages but empty ones, in as many requests as it takes."""
        for part in _requests([passage for passage in passages if passage.text.strip()]):
            asked = [AskedPassage(**passage._asdict()) for passage in part]
            body = EvaluationRequest(question=question, passages=asked)
            answer = self._sent(what, body, form)
            self._judged.about = self._known = answer.about
            yield answer

    def _sent(self, what: str, body: EvaluationRequest | None, form: type[_Reply]) -> _Reply:
        """Send a request, several times if need be, and note that."""
        if (wait := self._circuit.wait()) > 0:
            message = f"it failed {self._circuit.failures} times in a row; next try in {wait:.0f} s"
            raise self._error(message)
        failures: list[str] = []

        def once() -> _Reply:
            try:
                reply = self._once(what, body, form)
            except PassingError as error:
                failures.append(str(error))
                if self._circuit.failed():
                    note("circuit_opened", error, f"not asked for {self._circuit.seconds:.0f} s")
                raise
            self._circuit.succeeded()
            return reply

        patiently = Retrying(
            retry=retry_if_exception_type(PassingError),
            stop=_given_up,
            wait=_waiting,
            reraise=True,
        )
        reply = patiently(once)
        if failures:
            note("evaluator_retried", failures[-1], f"asked {len(failures) + 1} times")
        return reply

    def _once(self, what: str, body: EvaluationRequest | None, form: type[_Reply]) -> _Reply:
        method = "GET" if body is None else "POST"
        content = None if body is None else body.model_dump_json().encode()
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        most = _LEAST_BYTES + _BYTES_FOR_CHARACTER * len(content or b"")
        deadline = time.monotonic() + self._seconds
        try:
            with self._client.stream(
                method, f"{self.url}/{what}", content=content, headers=headers,
                follow_redirects=False,
            ) as response:  # fmt: skip
                received = self._received(response, most, deadline)
        except httpx.TimeoutException as error:
            raise self._passing(f"no reply within {self._seconds:g} s") from error
        except httpx.HTTPError as error:
            raise self._passing(f"{type(error).__name__}: {error}") from error
        self._check_status(response, received)
        try:
            reply = form.model_validate_json(received)
            _check(reply, body)
        except ValidationError as error:
            problem = problems(error, "")
            raise self._passing(f"the reply to /{what} is wrong: {problem}") from None
        except ReplyError as error:
            raise self._passing(f"the reply to /{what} is wrong: {error}") from None
        return reply

    def _received(self, response: httpx.Response, most: int, deadline: float) -> bytes:
        """Read a reply within its limits; they are those of the decompressed bytes."""
        received = bytearray()
        for chunk in response.iter_bytes():
            received += chunk
            if len(received) > most:
                raise self._passing(f"it replied with more than {most:,} bytes")
            if time.monotonic() > deadline:
                raise self._passing(f"no whole reply within {self._seconds:g} s")
        return bytes(received)

    def _check_status(self, response: httpx.Response, received: bytes) -> None:
        if response.is_success:
            return
        status = response.status_code
        if status in {401, 403}:
            problem = f"it refuses us with status {status}: set CRAG_EVALUATOR_TOKEN to its token"
            raise self._error(problem)
        if response.is_redirect:
            problem = (
                f"it redirects to another address ({status}), which is not followed: name that one"
            )
            raise self._error(problem)
        said = received.decode("utf-8", "replace")[:_SHOWN]
        if status in _PASSING:
            seconds = response.headers.get("retry-after", "").strip()
            wait = float(seconds) if seconds.isdecimal() else None
            raise self._passing(f"status {status}: {said}", wait)
        raise self._error(f"status {status}: {said}")

    def _error(self, problem: str) -> EvaluatorError:
        return EvaluatorError(f"evaluator service {self.url}: {problem}")

    def _passing(self, problem: str, wait: float | None = None) -> PassingError:
        return PassingError(str(self._error(problem)), wait)


class RemoteReader(RemoteEvaluator):
    """Ask a service that also reads: see `crag.parts.ReadingEvaluator`."""

    @property
    def quote_threshold(self) -> float:
        """The quoting threshold of the served evaluator; its upper one where it names none."""
        about = self.about
        return about.thresholds.upper if about.quote_threshold is None else about.quote_threshold

    @property
    def closest_threshold(self) -> float:
        """The `closest_threshold` of the served evaluator; -1.0 if it has none."""
        threshold = self.about.closest_threshold
        return LOWEST if threshold is None else threshold

    def read(self, question: str, passages: Sequence[Passage]) -> list[Reading]:
        """Return one reading for each passage, in order."""
        answers = self._answers("read", question, passages, Readings)
        received = (reading for answer in answers for reading in answer.readings)
        return [
            next(received)
            if passage.text.strip()
            else Reading(score=LOWEST, starts=[], evidence=[], span=None)
            for passage in passages
        ]


def is_service(name: str) -> bool:
    """Return whether the name of an evaluator is the address of a service."""
    return name.lower().startswith(("http://", "https://"))


def connect(
    url: str, *, token: str | None = None, seconds: float = SECONDS, reads: bool | None = None
) -> Evaluator:
    """Return the evaluator at `url`, which says whether it reads.

    With `reads` the service need not be there yet: it is taken to read, or not to, if it is not.

    Raises:
        EvaluatorError: the address is none, or, without `reads`, the service does not answer.
    """
    evaluator = RemoteEvaluator(url, token=token, seconds=seconds)
    try:
        reads = evaluator.about.reads
    except EvaluatorError:
        if reads is None:
            raise
    return RemoteReader(url, token=token, seconds=seconds) if reads else evaluator


def checked_url(url: str) -> str:
    """Return the address of a service without a slash at its end.

    Raises:
        EvaluatorError: it is none, or holds what does not belong there.
    """
    wrong = EvaluatorError("an evaluator service is named as http://HOST:PORT or https://HOST")
    try:
        parts = urlsplit(url)
        fits = is_service(url) and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise wrong from None
    if not fits:
        raise wrong
    if parts.username or parts.password or parts.query or parts.fragment:
        message = (
            f"the address of the evaluator service at {parts.hostname} holds a user, a query or a "
            "fragment: leave them out, and set CRAG_EVALUATOR_TOKEN if it asks for a token"
        )
        raise EvaluatorError(message)
    return url.rstrip("/")


_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16)


def _requests(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    """Divide passages into requests that a service takes."""
    part: list[Passage] = []
    length = 0
    for passage in passages:
        size = sum(map(len, passage))
        if part and (len(part) == MOST_PASSAGES or length + size > MOST_CHARACTERS):
            yield part
            part, length = [], 0
        part.append(passage)
        length += size
    if part:
        yield part


def _check(reply: BaseModel, body: EvaluationRequest | None) -> None:
    """Check a reply against what was asked.

    Raises:
        ReplyError: it is for other passages.
    """
    if isinstance(reply, Readings) and body is not None:
        readings_of(reply.readings, body.as_passages)
    if isinstance(reply, Scores) and body is not None and len(reply.scores) != len(body.passages):
        problem = f"returned {len(reply.scores)} scores for {len(body.passages)} texts"
        raise ReplyError("evaluator", problem)


def _wanted(state: RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome else None
    return error.wait if isinstance(error, PassingError) else None


def _given_up(state: RetryCallState) -> bool:
    return state.attempt_number >= ATTEMPTS or (_wanted(state) or 0.0) > LONGEST_WAIT


def _waiting(state: RetryCallState) -> float:
    seconds = _wanted(state)
    return _JITTER(state) if seconds is None else seconds


_JITTER = wait_random_exponential(multiplier=0.1, max=LONGEST_WAIT)
