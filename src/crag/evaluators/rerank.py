"""An evaluator behind HTTP: the rerank API that Cohere, Jina, vLLM, Infinity and others offer.

The address is the user's own configuration, so it may be of this machine or of a private network.
"""

import math
from collections.abc import Sequence

import httpx

from crag.errors import EvaluatorError
from crag.evaluators.cross_encoder import UNCALIBRATED, scored

SECONDS = 30.0
"""The longest time that one request may take."""
_MOST = 1000
"""Texts in one request; more make more requests."""


class RerankEvaluator:
    """Ask the rerank API at `url`, such as ``http://localhost:8000/v1/rerank?model=NAME``.

    The address may say two things, which are not sent with it: ``model``, the name that the service
    knows it by, and ``scores=logits`` where scores are the raw outputs of the model and no
    probabilities. A score is 2p - 1 for a probability p. No service says its thresholds: 0.5 and
    -0.5 stand for three quarters and one quarter. Without a connection it tries twice more.
    Thread-safe.

    Raises:
        EvaluatorError: the address is none; in `score`, the service cannot be used.
    """

    thresholds = UNCALIBRATED

    def __init__(self, url: str, *, token: str | None = None) -> None:
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise EvaluatorError(f"the evaluator's address is none: {error}") from error
        self._model, scores = address.params.get("model"), address.params.get("scores")
        self._is_logit = scores == "logits"
        self._address = address.copy_remove_param("model").copy_remove_param("scores")
        self._name = f"the rerank service {address.copy_with(query=None, userinfo=b'')}"
        if not address.host or address.userinfo or not address.path.strip("/"):
            form = "http://HOST:PORT/v1/rerank?model=NAME"
            raise self._error(f"write its address as {form}, and a token as CRAG_EVALUATOR_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.HTTPTransport(retries=2)
        self._client = httpx.Client(timeout=SECONDS, headers=headers, transport=transport)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; an empty one scores -1.0 and is not sent."""
        return scored(texts, _MOST, lambda part: self._asked(question, part))

    def _asked(self, question: str, texts: list[str]) -> list[float]:
        body = {"query": question, "documents": texts, "top_n": len(texts)}
        body |= {"model": self._model} if self._model else {}
        try:
            reply = self._client.post(self._address, json=body).raise_for_status().json()
            found = {one["index"]: float(one["relevance_score"]) for one in reply["results"]}
            scores = [found[index] for index in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            problem = f"its reply does not score each of {len(texts)} texts ({error!r})"
            raise self._error(problem) from error
        except httpx.HTTPStatusError as error:
            said = " ".join(error.response.text.split())[:200]
            raise self._error(f"status {error.response.status_code}: {said}") from error
        except httpx.HTTPError as error:
            raise self._error(f"{type(error).__name__}: {error}") from error
        if self._is_logit:
            return [math.tanh(score / 2) for score in scores]
        if not all(0 <= score <= 1 for score in scores):  # Not a number fails here, too.
            raise self._error("its scores are no probabilities: add scores=logits to the address")
        return [2 * score - 1 for score in scores]

    def _error(self, problem: str) -> EvaluatorError:
        return EvaluatorError(f"{self._name}: {problem}")
