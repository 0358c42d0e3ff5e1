"""Reflection by a model with the tokens behind an OpenAI-compatible completions server."""

import logging
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import httpx
from langgraph.constants import TAG_NOSTREAM

from crag.errors import ModelError, ModelProblem, SettingsError
from crag.events import redact
from crag.parts import Candidate, Continuation, Decision, Passage, Prefix, SegmentLimits
from crag.plain import first_line
from crag.reflection.backends.candidates import (
    Position,
    approximation_of,
    length,
    read_candidate,
    read_decision,
    shortest_cut,
)
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.spending import spend
from crag.reflection_tokens import END, GROUPS, RETRIEVE, TOKENS, tokens_missing
from crag.state import Usage

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult
    from langchain_openai import OpenAI

TOP = 20
"""Log-probabilities asked for at each position: vLLM's default limit."""
TIMEOUT = 60.0
"""Seconds for one request."""
RETRIES = 2
"""Repetitions after a rate limit, a server error or a timeout, with backoff (the client's own)."""
LONGEST_PASSAGE = 6000
"""Characters; about 1,500 tokens of English, of the 4,096 that Llama 2 reads."""
AS_ID = "token_id:"
"""What vLLM puts before the number of a token that it was asked to name by number."""
_LARGEST_GROUP = max(map(len, GROUPS.values()))
_SPECIAL: Mapping[str, Any] = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "return_tokens_as_token_ids": True,
    "include_stop_str_in_output": True,
    "preserved_tokens": list(TOKENS),  # llama.cpp's word for the first.
}
_ALL = 1_000_000
"""Prompts in one request."""
_LONGEST = 300
"""Characters of the server's own words."""
_REFUSED: tuple[ModelProblem, str] = "key", "refused the key. Check OPENAI_API_KEY or `api_key`"
_ADVICE: Mapping[int | None, tuple[ModelProblem, str]] = {
    401: _REFUSED,
    403: _REFUSED,
    404: (
        "unknown",
        (
            "does not serve it under this name, or not at this URL: there must be /v1/completions, "
            "and /tokenize beside /v1, as vLLM and llama.cpp's server have"
        ),
    ),
    400: (
        "failed",
        (
            "refused the request. If it allows fewer log-probabilities, raise --max-logprobs; if "
            "the prompt is too long, lower `longest_passage`"
        ),
    ),
    429: ("failed", "is asked too often. Wait, or raise its limits"),
}
"""The kind of a failure, and what the server did and what to do, by the status of its reply."""
_OTHERWISE: tuple[ModelProblem, str] = (
    "failed",
    (
        "failed, did not reply in time, or replied with what is no completion. Check `base_url`, "
        "that it runs, and its log"
    ),
)
_logger = logging.getLogger(__name__)


class _Completion(NamedTuple):
    """One completion of a reply."""

    text: str
    is_cut: bool
    listed: list[tuple[str, float | None, Mapping[str, float]]]
    """Each token with its log-probability, and those of the likeliest there."""


class CompletionsReflection:
    """Reflect with a model that vLLM or llama.cpp's server completes texts with.

        vllm serve selfrag/selfrag_llama2_7b --max-logprobs 20
        CompletionsReflection("selfrag/selfrag_llama2_7b", base_url="http://localhost:8000/v1")

    All candidates of a retrieval round are one request, whatever their prefixes, and so are all
    decisions. The server returns the `top` likeliest tokens of each position; a member of a group
    that is not among them is absent from the probabilities. On first use the server's tokenizer is
    asked for the number of each token. llama.cpp's server cannot stop at Retrieve tokens: the text
    that follows them is cut off here.

    A passage of more than `longest_passage` characters is cut at its end, between words, since the
    server's context is not known; the question never is. Without `api_key` it is taken from
    OPENAI_API_KEY; servers of one's own need none. Without `tokens_required` a model that lacks
    reflection tokens runs too: its critiques are neutral, and the sequence score decides.

    Raises:
        SettingsError: `top` is less than the largest group, 5.
        ModelError: on use, for any failure; the message says what to do.
    """

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        top: int = TOP,
        longest_passage: int = LONGEST_PASSAGE,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        tokens_required: bool = True,
    ) -> None:
        if top < _LARGEST_GROUP:
            raise SettingsError("top", top, f"at least {_LARGEST_GROUP}, the size of a group")
        self._model, self._base_url = model, base_url
        self._host = urlsplit(base_url).hostname or ""
        """The server's name, without what a URL may hold beside it."""
        self._key = api_key or os.environ.get("OPENAI_API_KEY", "")
        self._top, self._timeout, self._retries = top, timeout, retries
        self._tokens_required, self._longest_passage = tokens_required, longest_passage
        self._names: Mapping[int, str] | None = None

    def __repr__(self) -> str:
        return f"CompletionsReflection({self._model!r}, {self._host!r})"

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        return approximation_of(self._names.values()) if self._names is not None else ""

    def load(self) -> None:
        """Ask the server for the tokens now, so that errors show before a run.

        Raises:
            ModelError: it cannot be asked, or its model lacks a reflection token.
        """
        if self._names is None:
            self._names = self._asked_names()

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        decisions: list[Decision] = []
        for completion in self._ask(list(map(decision_prompt, prefixes)), 1, ()):
            positions = self._positions(completion)
            if not positions:
                raise ModelError(self._model, "empty", "the reply has no token to decide by")
            emitted = completion.text or positions[0].token
            decisions.append(read_decision(positions[0], emitted))
        return decisions

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        prompts = [
            candidate_prompt(prefix, self._shown(passage), is_draft=limits.is_draft)
            for prefix, passage in continuations
        ]
        completions = self._ask(prompts, limits.max_tokens, () if limits.whole_answer else RETRIEVE)
        return [
            self._candidate(completion, passage, limits)
            for (_, passage), completion in zip(continuations, completions, strict=True)
        ]

    def _shown(self, passage: Passage | None) -> Passage | None:
        most = self._longest_passage
        if passage is None or len(passage.text) <= most:
            return passage
        _logger.warning("the passage %r is cut to its first %d characters", passage.title, most)
        return shortest_cut(passage, lambda shown: len(shown.text) <= most)

    def _candidate(
        self, completion: _Completion, passage: Passage | None, limits: SegmentLimits
    ) -> Candidate:
        positions = self._positions(completion)
        end = length(positions, limits)
        # Up to the token that ends the segment; no text spells it out by chance.
        ender = positions[end].token if end < len(positions) else END
        return read_candidate(
            positions,
            completion.text.partition(ender)[0],
            limits,
            has_passage=passage is not None,
            otherwise="length" if completion.is_cut else "end",
        )

    def _positions(self, completion: _Completion) -> list[Position]:
        """Return the generated tokens; reflection tokens that the server did not list are absent.

        Raises:
            ModelError: the server lists fewer tokens at a position than the largest group has, or
                names them otherwise.
        """
        names = {f"{AS_ID}{number}": token for number, token in self._known().items()}
        most = max((len(top) for _, _, top in completion.listed), default=_LARGEST_GROUP)
        if most < _LARGEST_GROUP:
            problem = (
                f"the server lists {most} log-probabilities for each token, but a group of "
                f"reflection tokens has {_LARGEST_GROUP}. Allow more (vLLM: --max-logprobs 20)"
            )
            raise ModelError(self._model, "failed", problem)
        positions: list[Position] = []
        for name, own, top in completion.listed:
            if not name.startswith(AS_ID):
                problem = "the server does not name tokens by number, as vLLM and llama.cpp's do"
                raise ModelError(self._model, "failed", problem)
            seen = {names[other]: p for other, p in top.items() if other in names}
            if name in names and own is not None:
                seen[names[name]] = own
            positions.append(Position(names.get(name, ""), min(0.0, own or 0.0), seen))
        return positions

    def _known(self) -> Mapping[int, str]:
        self.load()
        return self._names or {}

    def _asked_names(self) -> dict[int, str]:
        """Ask the server for the number of each reflection token, and of the one that ends texts.

        vLLM and llama.cpp's server have the path ``/tokenize`` beside ``/v1``, each with its own
        name for the text; only the latter says at ``/props`` which token ends a text.
        """
        place = urlsplit(self._base_url)
        root = urlunsplit(place._replace(path=place.path.rstrip("/").removesuffix("/v1")))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        options = {"model": self._model, "add_special_tokens": False, "parse_special": True}
        names: dict[int, str] = {}
        try:
            with httpx.Client(timeout=self._timeout, headers=headers) as client:
                properties = client.get(f"{root}/props", params={"model": self._model})
                end = properties.json()["eos_token"] if properties.is_success else END
                for text in (*TOKENS, end):
                    asked = {**options, "prompt": text, "content": text}
                    reply = client.post(f"{root}/tokenize", json=asked).raise_for_status()
                    numbers = reply.json()["tokens"]
                    if len(numbers) == 1 and isinstance(numbers[0], int):
                        names[numbers[0]] = END if text == end else text
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise self._error(error) from None
        missing = [token for token in TOKENS if token not in names.values()]
        if missing and self._tokens_required:
            raise tokens_missing(self._model, missing)
        return names

    def _ask(self, prompts: Sequence[str], most: int, stops: Sequence[str]) -> list[_Completion]:
        """Return one completion for each prompt, by one request of at most `most` tokens each."""
        from openai import OpenAIError

        if not prompts:
            return []
        further = dict(_SPECIAL)
        numbers = [number for number, token in self._known().items() if token in stops]
        if numbers:
            further["stop_token_ids"] = numbers
        try:
            result = self._openai.generate(list(prompts), max_tokens=most, extra_body=further)
        except (OpenAIError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A malformed reply raises any of these; the cause may spell out the key.
            raise self._error(error) from None
        spend(_usage(result))
        generated = [generation for several in result.generations for generation in several]
        if len(generated) != len(prompts):
            problem = f"the reply has {len(generated)} completions for {len(prompts)} prompts"
            raise ModelError(self._model, "failed", problem)
        return [self._read(one.text, one.generation_info or {}) for one in generated]

    def _read(self, text: str, information: Mapping[str, Any]) -> _Completion:
        logs = information.get("logprobs")
        if logs is None:
            problem = (
                "the reply has no log-probabilities, without which there is no reflection. Use a "
                "server whose completions have them (vLLM does), or prompted reflection"
            )
            raise ModelError(self._model, "failed", problem)
        try:
            listed = _listed(logs)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"the reply is no completion with log-probabilities ({first_line(error)})"
            raise ModelError(self._model, "failed", problem) from None
        return _Completion(text, information.get("finish_reason") == "length", listed)

    @cached_property
    def _openai(self) -> "OpenAI":
        from langchain_openai import OpenAI
        from pydantic import SecretStr

        return OpenAI(
            model=self._model, base_url=self._base_url,
            api_key=SecretStr(self._key or "not-needed"), temperature=0, logprobs=self._top,
            batch_size=_ALL, cache=False, timeout=self._timeout, max_retries=self._retries,
            tags=[TAG_NOSTREAM],
        )  # fmt: skip

    def _error(self, error: Exception) -> ModelError:
        """Return the error for a failed request, without the key in it."""
        status = getattr(error, "status_code", None)  # Of OpenAI's client; httpx has it inside.
        status = getattr(getattr(error, "response", None), "status_code", status)
        problem, advice = _ADVICE.get(status, _OTHERWISE)
        words = redact(str(error))
        words = words.replace(self._key, "[secret]") if self._key else words
        words = f"{type(error).__name__}: {' '.join(words.split())[:_LONGEST]}"
        return ModelError(self._model, problem, f"{self._host} {advice} ({words})")


def _listed(logs: Any) -> list[tuple[str, float | None, Mapping[str, float]]]:
    """Return the tokens of a completion; llama.cpp's server lists them in a form of its own."""
    if "content" in logs:
        return [
            (
                f"{AS_ID}{token['id']}",
                token["logprob"],
                {f"{AS_ID}{top['id']}": top["logprob"] for top in token.get("top_logprobs", [])},
            )
            for token in logs["content"]
        ]
    tops = [top or {} for top in logs["top_logprobs"]]
    return list(zip(logs["tokens"], logs["token_logprobs"], tops, strict=True))


def _usage(result: "LLMResult") -> Usage:
    counted = (result.llm_output or {}).get("token_usage") or {}
    usage = Usage(llm_calls=1)
    if counted:
        usage["input_tokens"] = int(counted.get("prompt_tokens") or 0)
        usage["output_tokens"] = int(counted.get("completion_tokens") or 0)
    return usage
