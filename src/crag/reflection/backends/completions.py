"""Reflection by a model with the tokens behind an OpenAI-compatible completions server."""

import logging
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from crag.errors import ModelError, ModelProblem, SettingsError
from crag.events import redact
from crag.parts import Candidate, Continuation, Decision, Passage, Prefix, SegmentLimits
from crag.reflection.backends.candidates import (
    LARGEST_GROUP,
    Position,
    approximation_of,
    length,
    read_candidate,
    read_decision,
    shortest_cut,
)
from crag.reflection.backends.llama_cpp import (
    AS_ID,
    KEPT,
    NO_ECHO,
    ask_names,
    parallel_lists,
)
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.spending import spend
from crag.reflection_tokens import END, GROUPS, RETRIEVE, TOKENS
from crag.runtime.waiting import blocking, call, compute
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
ECHO: Mapping[str, Any] = {"echo": True}
"""Ask for the prompt's tokens as well; such a request is not counted as spent."""
ECHOED = (*TOKENS, END)
"""The prompts whose echo `read_names` reads."""
Names = Mapping[str, str]
"""The reflection token, or `END`, of each token as the server writes it in its replies."""
_SPECIAL = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "return_tokens_as_token_ids": True,
    "include_stop_str_in_output": True,
    **KEPT,
}
_NOT_ECHOED = "the server does not echo prompts"
_ALL = 1_000_000
"""Prompts in one request."""
_UNSEEN_SHARE = 0.01
"""The share of a group that a token the server did not list may have before that is logged."""
_LONGEST = 300
"""Characters of the server's own words."""
_logger = logging.getLogger(__name__)


class _LogProbabilities(BaseModel):
    """Of the tokens of one completion; the lists are parallel."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] = Field(default_factory=list)


class Completion(BaseModel):
    """One completion of a reply."""

    text: str
    finish_reason: str | None
    logprobs: Annotated[_LogProbabilities, BeforeValidator(parallel_lists)]


class CompletionsReflection:
    """Reflect with a model that an OpenAI-compatible server completes texts with, such as vLLM.

        vllm serve selfrag/selfrag_llama2_7b --max-logprobs 20
        CompletionsReflection("selfrag/selfrag_llama2_7b", base_url="http://localhost:8000/v1")

    All candidates of a retrieval round are one request, whatever their prefixes, and so are all
    decisions. The server returns the `top` likeliest tokens of each position; a member of a group
    that is not among them is absent from the probabilities, with a warning in the log if it could
    change a score. On first use the server is asked to echo the tokens,
    which shows how it names them and that each is a single one; with `tokenizer` (a folder or hub
    id) they are looked up there instead. Servers that name tokens by their strings cannot
    stop at Retrieve tokens: the text that follows them is cut off here.

    A passage of more than `longest_passage` characters is cut at its end, between words, since the
    server's context is not known; the question never is. Without `api_key` it is taken from
    OPENAI_API_KEY; servers of one's own need none.

    Without `tokens_required` a model that lacks reflection tokens runs too, as the papers'
    LLaMA2-hf-7b did: what it lacks is missing from every candidate, so that critiques are neutral
    and the sequence score decides.

    Raises:
        SettingsError: `top` is less than the largest group, 5.
        ModelError: on use, for any failure; the message says what to do.
    """

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        return approximation_of(self._names.values()) if self._names is not None else ""

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        top: int = TOP,
        tokenizer: str | Path | None = None,
        longest_passage: int = LONGEST_PASSAGE,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        tokens_required: bool = True,
    ) -> None:
        if top < LARGEST_GROUP:
            raise SettingsError("top", top, f"at least {LARGEST_GROUP}, the size of a group")
        self._model, self._base_url = model, base_url
        self._host = urlsplit(base_url).hostname or ""
        """The server's name, without what a URL may hold beside it."""
        self._key = api_key or os.environ.get("OPENAI_API_KEY", "")
        self._top, self._timeout, self._retries = top, timeout, retries
        self._tokenizer = tokenizer
        self._tokens_required = tokens_required
        self._longest_passage = longest_passage
        self._names: Names | None = None

    def __repr__(self) -> str:
        return f"CompletionsReflection({self._model!r}, {self._host!r})"

    def load(self) -> None:
        """Ask the server for the tokens now, so that errors show before a run.

        Raises:
            ModelError: it cannot be asked, or its model lacks a reflection token.
        """
        blocking(self._known_names())

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        return blocking(self.adecide(prefixes))

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        return blocking(self.acandidates(continuations, limits))

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Do as `decide` without blocking the event loop."""
        if not prefixes:
            return []
        names = await self._known_names()
        completions = await self._ask(list(map(decision_prompt, prefixes)), 1, {})
        return [self._decision(completion, names) for completion in completions]

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates` without blocking the event loop."""
        if not continuations:
            return []
        names = await self._known_names()
        prompts = [
            candidate_prompt(prefix, self._shown(passage), is_draft=limits.is_draft)
            for prefix, passage in continuations
        ]
        stops = [] if limits.whole_answer else stop_ids(names, RETRIEVE)
        further = {"stop_token_ids": stops} if stops else {}
        completions = await self._ask(prompts, limits.max_tokens, further)
        return [
            self._candidate(completion, passage, limits, names)
            for (_, passage), completion in zip(continuations, completions, strict=True)
        ]

    def _shown(self, passage: Passage | None) -> Passage | None:
        most = self._longest_passage
        if passage is None or len(passage.text) <= most:
            return passage
        _logger.warning(
            "the passage %r has %d characters: of its first %d the whole words are used",
            passage.title, len(passage.text), most,
        )  # fmt: skip
        return shortest_cut(passage, lambda shown: len(shown.text) <= most)

    def _decision(self, completion: Completion, names: Names) -> Decision:
        positions = positions_of(self._model, completion, names)
        if not positions:
            raise ModelError(self._model, "empty", "the reply has no token to decide by")
        return read_decision(positions[0], completion.text or positions[0].token)

    def _candidate(
        self, completion: Completion, passage: Passage | None, limits: SegmentLimits, names: Names
    ) -> Candidate:
        positions = positions_of(self._model, completion, names)
        end = length(positions, limits)
        # Up to the token that ends the segment; no text spells it out by chance.
        ender = positions[end].token if end < len(positions) else END
        return read_candidate(
            positions,
            completion.text.partition(ender)[0],
            limits,
            has_passage=passage is not None,
            otherwise="length" if completion.finish_reason == "length" else "end",
        )

    async def _known_names(self) -> Names:
        names = self._names
        if names is None and self._tokenizer is not None:
            # Loading a tokenizer may go over the network.
            names = await compute(self._looked_up)
        self._names = names or await self._learned()
        return self._names

    async def _learned(self) -> Names:
        try:
            echoed = [echo.logprobs.tokens for echo in await self._ask(ECHOED, 1, ECHO)]
            return read_names(self._model, echoed, tokens_required=self._tokens_required)
        except ModelError as error:
            return await compute(self._names_without_echo, error)

    def _names_without_echo(self, error: ModelError) -> Names:
        """Ask llama.cpp's tokenizer, if it is its server that does not echo.

        Raises:
            ModelError: `error`, if it is another server; or its model lacks a token.
        """
        if not any(words in str(error) for words in (NO_ECHO, _NOT_ECHOED)):
            raise error
        numbers = ask_names(self._base_url, self._model, self._key, self._timeout)
        if numbers is None:
            raise error
        missing = [token for token in TOKENS if token not in numbers.values()]
        if missing and self._tokens_required:
            raise without_tokens(self._model, missing)
        return names_by_number(numbers)

    def _looked_up(self) -> Names:
        from crag.reflection.backends.transformers import load_tokenizer, names_of

        tokenizer = load_tokenizer(str(self._tokenizer))
        return names_by_number(names_of(tokenizer, tokens_required=self._tokens_required))

    async def _ask(
        self, prompts: Sequence[str], most: int, further: Mapping[str, Any]
    ) -> list[Completion]:
        """Return one completion for each prompt, by one request of at most `most` tokens each.

        `further` are options beyond OpenAI's; `ECHO` asks for the prompts as well.
        """
        from openai import OpenAIError

        model = self._openai
        options: dict[str, Any] = {"max_tokens": most, "extra_body": {**_SPECIAL, **further}}
        try:
            result = await call(model.generate, model.agenerate, list(prompts), **options)
        except (OpenAIError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A malformed reply raises any of these; the cause may spell out the key.
            raise model_error(error, self._model, self._host, self._key) from None
        return self._completions(result, prompts, further)

    def _completions(
        self, result: "LLMResult", prompts: Sequence[str], further: Mapping[str, Any]
    ) -> list[Completion]:
        if further is not ECHO:
            spend(_usage(result))
        generated = [generation for several in result.generations for generation in several]
        if len(generated) != len(prompts):
            problem = f"the reply has {len(generated)} completions for {len(prompts)} prompts"
            raise ModelError(self._model, "failed", problem)
        return [
            read_completion(self._model, generation.text, generation.generation_info)
            for generation in generated
        ]

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


def _usage(result: "LLMResult") -> Usage:
    counted = (result.llm_output or {}).get("token_usage") or {}
    usage = Usage(llm_calls=1)
    if counted:
        usage["input_tokens"] = int(counted.get("prompt_tokens") or 0)
        usage["output_tokens"] = int(counted.get("completion_tokens") or 0)
    return usage


def read_completion(model: str, text: object, information: Mapping[str, Any] | None) -> Completion:
    """Read a completion from its text and what LangChain kept beside it.

    Raises:
        ModelError: it has no log-probabilities, or is not of the known form.
    """
    details = dict(information or {})
    if details.get("logprobs") is None:
        problem = (
            "the reply has no log-probabilities, without which there is no reflection. Use a "
            "server whose completions have them (vLLM does), or prompted reflection"
        )
        raise ModelError(model, "failed", problem)
    try:
        return Completion.model_validate(details | {"text": text})
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        problem = f"the reply is no completion with log-probabilities: {where} is malformed"
        raise ModelError(model, "failed", problem) from None


def positions_of(model: str, completion: Completion, names: Names) -> list[Position]:
    """Return the generated tokens; reflection tokens that the server did not list are absent.

    Raises:
        ModelError: the server lists fewer tokens at a position than the largest group has.
    """
    logs = completion.logprobs
    if not len(logs.tokens) == len(logs.token_logprobs) == len(logs.top_logprobs):
        problem = "the reply is malformed: its lists of log-probabilities differ in length"
        raise ModelError(model, "failed", problem)
    listed = max((len(top or {}) for top in logs.top_logprobs), default=LARGEST_GROUP)
    if listed < LARGEST_GROUP:
        problem = (
            f"the server lists {listed} log-probabilities for each token, but a group of "
            f"reflection tokens has {LARGEST_GROUP}. Allow more (vLLM: --max-logprobs 20)"
        )
        raise ModelError(model, "failed", problem)
    return [
        _position(token, own, top or {}, names)
        for token, own, top in zip(logs.tokens, logs.token_logprobs, logs.top_logprobs, strict=True)
    ]


def read_names(
    model: str, echoes: Sequence[Sequence[str]], *, tokens_required: bool = True
) -> dict[str, str]:
    """Learn how a server names reflection tokens from its echo of `ECHOED`, one list for each.

    An echo is what the tokenizer puts before every text, the token, and one generated token.
    Without `tokens_required` those that are no single token there are absent.

    Raises:
        ModelError: a token is not a single one there, or the server does not echo.
    """
    if any(len(echo) < 2 for echo in echoes):  # noqa: PLR2004 - the token and one generated
        problem = (
            f"{_NOT_ECHOED}, so how it names reflection tokens cannot be "
            "learned. Give `tokenizer`: a folder or hub id with the model's tokenizer"
        )
        raise ModelError(model, "unknown", problem)
    required = echoes[: len(TOKENS)]
    common = len(
        list(takewhile(lambda column: len(set(column)) == 1, zip(*required, strict=False)))
    )
    pieces = [list(echo[common:-1]) for echo in echoes]
    split = [token for token, piece in zip(TOKENS, pieces, strict=False) if len(piece) != 1]
    distinct = len({piece[0] for piece in pieces[: len(TOKENS)] if piece}) == len(TOKENS)
    if tokens_required and (split or not distinct):
        raise without_tokens(model, split)
    single = [
        (piece[0], token) for token, piece in zip(ECHOED, pieces, strict=True) if len(piece) == 1
    ]
    named = Counter(name for name, _ in single)  # An unknown token stands for several.
    return {name: token for name, token in single if named[name] == 1}


def without_tokens(model: str, missing: Sequence[str]) -> ModelError:
    """Return the error for a model whose tokenizer lacks tokens, or has some of them twice."""
    problem = (
        f"its tokenizer has no single token for {', '.join(missing) or 'each reflection token'}; "
        "serve a model that was trained with Self-RAG's tokens (such as "
        "selfrag/selfrag_llama2_7b), use prompted reflection, or set "
        "CRAG_REFLECTION_TOKENS=optional to run it with neutral critiques"
    )
    return ModelError(model, "unknown", problem)


def names_by_number(ids: Mapping[int, str]) -> dict[str, str]:
    """Return the names for a known tokenizer: by number, and by string, as some servers name."""
    return {f"{AS_ID}{number}": token for number, token in ids.items()} | {
        token: token for token in ids.values()
    }


def stop_ids(names: Names, stops: Sequence[str]) -> list[int]:
    """Return the numbers of the tokens to stop at, if the server names tokens by number."""
    return [
        int(name.removeprefix(AS_ID))
        for name, token in names.items()
        if token in stops and name.startswith(AS_ID)
    ]


def _position(token: str, own: float | None, top: Mapping[str, float], names: Names) -> Position:
    reflecting = {names[name]: value for name, value in top.items() if name in names}
    if token in names and own is not None:
        reflecting[names[token]] = own
    position = Position(names.get(token, ""), min(0.0, own or 0.0), reflecting)
    _warn_of_unseen(position, min(top.values(), default=-math.inf))
    return position


def _warn_of_unseen(position: Position, least: float) -> None:
    """Warn if a missing member may matter: its log-probability is at most `least`."""
    for group in GROUPS.values():
        mass = sum(math.exp(position.seen[token]) for token in group if token in position.seen)
        missing = [token for token in group if token not in position.seen]
        if position.token in group and missing and math.exp(least) > _UNSEEN_SHARE * mass:
            _logger.warning("%s not listed, each at most %.3g", missing, math.exp(least))


def model_error(error: Exception, model: str, host: str, key: str) -> ModelError:
    """Return the error for a failed request to the server at `host`, without `key` in it."""
    problem, said = _diagnosed(error, host)
    words = redact(str(error)).replace(key, "[secret]") if key else redact(str(error))
    words = " ".join(words.split())[:_LONGEST]
    return ModelError(model, problem, f"{said} ({type(error).__name__}: {words})")


def _diagnosed(error: Exception, host: str) -> tuple[ModelProblem, str]:  # noqa: PLR0911
    import openai

    match error:
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return "key", f"{host} refused the key. Check OPENAI_API_KEY or `api_key`"
        case openai.NotFoundError():
            return "unknown", f"{host} does not serve it under this name, or not at this URL"
        case openai.RateLimitError():
            return "failed", f"{host} is asked too often. Wait, or raise its limits"
        case openai.APITimeoutError():
            return "failed", f"{host} did not reply in time. Raise `timeout`, or generate less"
        case openai.APIConnectionError():
            return "failed", f"{host} cannot be reached. Check `base_url`, and that it runs"
        case openai.APIStatusError() if error.status_code >= 500:  # noqa: PLR2004
            return "failed", f"{host} failed. Look at its log, or try again later"
        case openai.APIStatusError():
            return "failed", (
                f"{host} refused the request. If it allows fewer log-probabilities, raise "
                "--max-logprobs; if the prompt is too long, lower `longest_passage`"
            )
        case _:
            return "failed", f"the reply of {host} is no completion. Check `base_url`"
