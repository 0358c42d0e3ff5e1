"""An evaluator as a service: the ASGI application that `crag.evaluators.contract` describes.

Requests run in threads. A packaged evaluator uses all cores for what they ask together
(`crag.models.model`), so one process is enough for a machine.
"""

import asyncio
import math
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.errors import EvaluatorError
from crag.evaluators.contract import (
    MOST_BYTES,
    About,
    EvaluationRequest,
    Readings,
    Scores,
    ServedThresholds,
)
from crag.evaluators.remote import is_service
from crag.events import describe
from crag.factory.embeddings import choose_encoder
from crag.factory.parts import choose_evaluator, choose_model, choose_prompts
from crag.parts import Evaluator, is_reading
from crag.plain import problems
from crag.runtime.attempt import Attempt
from crag.runtime.environment import Environment
from crag.runtime.evaluator_calls import scores_of
from crag.runtime.replies import readings_of, scores_of_reply, thresholds_of
from crag.text.language import languages_of

THREADS = 32
"""Requests that are judged at once; those of one model share its batches."""
MOST_WAITING = 256
"""Requests that are judged or wait for it; others get status 503."""
_BROWSERS = ("origin", "sec-fetch-site")
_JSON = "application/json"
_Result = TypeVar("_Result")


class _RefusedError(HTTPException):
    """A request that cannot be served; the router's own errors are none."""


def evaluator_app(
    evaluator: Evaluator,
    name: str,
    *,
    token: str | None = None,
    threads: int = THREADS,
    most_waiting: int = MOST_WAITING,
) -> Starlette:
    """Return the application that serves `evaluator`.

    Without a `token` it answers this machine only.
    """
    return _Service(evaluator, name, token, threads, most_waiting).app()


def served(environment: Environment) -> Starlette:
    """Return the application with the evaluator that the environment names, loaded.

    Raises:
        CragError: the evaluator cannot be used, or is itself a service.
    """
    name, token = environment.evaluator, environment.evaluator_token
    if is_service(name):
        message = f"CRAG_EVALUATOR names another service, {name}: name what is to be served"
        raise EvaluatorError(message)
    model, prompts = choose_model(environment), choose_prompts(environment)
    evaluator = choose_evaluator(environment, choose_encoder(environment), model, prompts)
    evaluator.score("Does it load?", ["It does."])  # Before the first client waits for it.
    return evaluator_app(evaluator, name, token=token.get_secret_value() if token else None)


class _Service:
    """The routes, and the threads that they share."""

    def __init__(
        self, evaluator: Evaluator, name: str, token: str | None, threads: int, most_waiting: int
    ) -> None:
        self._evaluator, self._name, self._token = evaluator, name, token
        self._most_waiting = most_waiting
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="evaluator")
        self._under_way = 0

    def app(self) -> Starlette:
        routes = [
            Route("/ok", self._ok),
            Route("/about", self._tell),
            Route("/score", self._score, methods=["POST"]),
        ]
        if is_reading(self._evaluator):
            routes.append(Route("/read", self._read, methods=["POST"]))
        return Starlette(routes=routes, exception_handlers={_RefusedError: _refused})

    async def _ok(self, _: Request) -> Response:
        return JSONResponse({"ok": True})

    async def _tell(self, request: Request) -> Response:
        self._admit(request)
        return _reply(await self._judged(self._about))

    async def _score(self, request: Request) -> Response:
        asked = await self._asked(request)
        return _reply(await self._judged(lambda: self._scores(asked)))

    async def _read(self, request: Request) -> Response:
        asked = await self._asked(request)
        return _reply(await self._judged(lambda: self._readings(asked)))

    def _about(self) -> About:
        evaluator = self._evaluator
        own = thresholds_of(evaluator)
        return About(
            name=self._name,
            thresholds=ServedThresholds(upper=own["upper"], lower=own["lower"]),
            reads=is_reading(evaluator),
            quote_threshold=evaluator.quote_threshold if is_reading(evaluator) else None,
            closest_threshold=getattr(evaluator, "closest_threshold", None),
            languages=sorted(languages_of(evaluator)),
        )

    def _scores(self, asked: EvaluationRequest) -> Scores:
        found = scores_of(self._evaluator, asked.question, asked.as_passages)
        scores = scores_of_reply(found, len(asked.passages))
        # After judging, as the thresholds may be those of the evaluator that judged last.
        about = self._about()
        return Scores(about=about, scores=[one if math.isfinite(one) else None for one in scores])

    def _readings(self, asked: EvaluationRequest) -> Readings:
        assert is_reading(self._evaluator)  # noqa: S101 - the route is there for one that reads
        readings = readings_of(
            self._evaluator.read(asked.question, asked.as_passages), asked.as_passages
        )
        return Readings(about=self._about(), readings=readings)

    async def _judged(self, judge: Callable[[], _Result]) -> _Result:
        """Run in one of the threads.

        Raises:
            _RefusedError: too many wait, or the evaluator failed.
        """
        if self._under_way >= self._most_waiting:
            detail = f"{self._under_way} requests wait already"
            raise _RefusedError(503, detail, {"Retry-After": "1"})
        self._under_way += 1
        try:
            with Attempt("evaluator") as attempt:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._threads, judge)
        finally:
            self._under_way -= 1
        raise _RefusedError(500, describe(attempt.error))

    def _admit(self, request: Request) -> None:
        """Refuse who may not ask: pages in a browser, and whoever lacks the token.

        Raises:
            _RefusedError: they may not.
        """
        if any(name in request.headers for name in _BROWSERS):
            raise _RefusedError(403, "this service does not answer pages in a browser")
        if self._token is None:
            if not _of_this_machine(request):
                detail = "without a token this service answers its own machine only"
                raise _RefusedError(403, detail)
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        same = secrets.compare_digest(given.strip().encode(), self._token.encode())
        if kind.lower() != "bearer" or not same:
            detail = "the token is missing or wrong: send it as Authorization: Bearer"
            raise _RefusedError(401, detail)

    async def _asked(self, request: Request) -> EvaluationRequest:
        """Read and check the body.

        Raises:
            _RefusedError: it is too large, or is not what the contract says.
        """
        self._admit(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            raise _RefusedError(415, f"a body is read as {_JSON} only: set Content-Type")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise _RefusedError(413, f"a body may have {MOST_BYTES:,} bytes: send less")
        try:
            return EvaluationRequest.model_validate_json(bytes(body))
        except ValidationError as error:
            raise _RefusedError(422, problems(error, "").lstrip(": ")) from None


def _of_this_machine(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, _RefusedError)  # noqa: S101 - as registered
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def _reply(told: BaseModel) -> Response:
    return Response(told.model_dump_json(), media_type=_JSON)
