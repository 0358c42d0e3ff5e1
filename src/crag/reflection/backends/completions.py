"""Reflection by a model with the tokens behind an OpenAI-compatible completions server."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crag.errors import ModelError, SettingsError
from crag.reflection.backend import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    SegmentLimits,
)
from crag.reflection.backends.completions_client import (
    ECHO,
    RETRIES,
    TIMEOUT,
    TOP,
    CompletionsClient,
)
from crag.reflection.backends.completions_wire import (
    ECHOED,
    Completion,
    Names,
    names_by_number,
    positions_of,
    read_names,
    stop_ids,
)
from crag.reflection.backends.reading import (
    LARGEST_GROUP,
    Position,
    length,
    read_candidate,
    read_decision,
    shortest_cut,
)
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.tokens import END, RETRIEVE

LONGEST_PASSAGE = 6000
"""Characters; about 1,500 tokens of English, of the 4,096 that Llama 2 reads."""
_logger = logging.getLogger(__name__)


class CompletionsReflection:
    """Reflect with a model that an OpenAI-compatible server completes texts with, such as vLLM.

        vllm serve selfrag/selfrag_llama2_7b --max-logprobs 20
        CompletionsReflection("selfrag/selfrag_llama2_7b", base_url="http://localhost:8000/v1")

    All candidates of a retrieval round are one request, whatever their prefixes, and so are all
    decisions. Of each position the `top` likeliest tokens
    are seen; a member of a group that is not among them is absent from the probabilities, with a
    warning in the log where it could matter. On first use the server is asked to echo the tokens,
    which shows how it names them and that each is a single one; with `tokenizer` (a folder or hub
    id) they are looked up there instead. A server that names tokens by their strings, as some do,
    is not asked to stop at Retrieve tokens: what follows them is cut off here.

    A passage of more than `longest_passage` characters is cut at its end, between words, since the
    server's context is not known; the question never is. Without `api_key` it is taken from
    OPENAI_API_KEY; servers of one's own need none.

    Raises:
        SettingsError: `top` is less than the largest group, 5.
        ModelError: on use, for whatever fails; it says what to do.
    """

    approximation = ""

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
    ) -> None:
        if top < LARGEST_GROUP:
            raise SettingsError("top", top, f"at least {LARGEST_GROUP}, the size of a group")
        self._model = model
        self._client = CompletionsClient(
            model, base_url, api_key, top=top, timeout=timeout, retries=retries
        )
        self._tokenizer = tokenizer
        self._longest_passage = longest_passage
        self._names: Names | None = None

    def __repr__(self) -> str:
        return f"CompletionsReflection({self._model!r}, {self._client.host!r})"

    def load(self) -> None:
        """Ask the server for the tokens now, so that what is wrong shows before a run.

        Raises:
            ModelError: it cannot be asked, or its model lacks a reflection token.
        """
        self._known_names()

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        if not prefixes:
            return []
        names = self._known_names()
        found = self._client.ask(list(map(decision_prompt, prefixes)), 1, {})
        return [self._decision(completion, names) for completion in found]

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order, by one request.

        Raises:
            ModelError: the server failed, or its reply cannot be used.
        """
        if not continuations:
            return []
        names = self._known_names()
        prompts = self._prompts(continuations)
        found = self._client.ask(prompts, limits.max_tokens, _stopping(names, limits))
        return self._candidates(found, continuations, limits, names)

    async def adecide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Do as `decide` without blocking the event loop."""
        if not prefixes:
            return []
        names = await self._aknown_names()
        found = await self._client.aask(list(map(decision_prompt, prefixes)), 1, {})
        return [self._decision(completion, names) for completion in found]

    async def acandidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Do as `candidates` without blocking the event loop."""
        if not continuations:
            return []
        names = await self._aknown_names()
        prompts = self._prompts(continuations)
        found = await self._client.aask(prompts, limits.max_tokens, _stopping(names, limits))
        return self._candidates(found, continuations, limits, names)

    def _prompts(self, continuations: Sequence[Continuation]) -> list[str]:
        return [candidate_prompt(prefix, self._shown(passage)) for prefix, passage in continuations]

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

    def _candidates(
        self,
        completions: Sequence[Completion],
        continuations: Sequence[Continuation],
        limits: SegmentLimits,
        names: Names,
    ) -> list[Candidate]:
        found: list[Candidate] = []
        for (_, passage), completion in zip(continuations, completions, strict=True):
            positions = positions_of(self._model, completion, names)
            found.append(
                read_candidate(
                    positions,
                    _segment(completion.text, positions, limits),
                    limits,
                    has_passage=passage is not None,
                    otherwise="length" if completion.finish_reason == "length" else "end",
                )
            )
        return found

    def _known_names(self) -> Names:
        names = self._names or self._looked_up() or self._told(self._client.ask(ECHOED, 1, ECHO))
        self._names = names
        return names

    async def _aknown_names(self) -> Names:
        names = self._names
        if names is None and self._tokenizer is not None:
            # Loading a tokenizer may go over the network.
            names = await asyncio.to_thread(self._looked_up)
        self._names = names or self._told(await self._client.aask(ECHOED, 1, ECHO))
        return self._names

    def _told(self, echoes: Sequence[Completion]) -> Names:
        return read_names(self._model, [echo.logprobs.tokens for echo in echoes])

    def _looked_up(self) -> Names | None:
        if self._tokenizer is None:
            return None
        from crag.reflection.backends.language_model import load_tokenizer, names_of

        return names_by_number(names_of(load_tokenizer(str(self._tokenizer))))


def _stopping(names: Names, limits: SegmentLimits) -> dict[str, Any]:
    numbers = [] if limits.whole_answer else stop_ids(names, RETRIEVE)
    return {"stop_token_ids": numbers} if numbers else {}


def _segment(text: str, positions: Sequence[Position], limits: SegmentLimits) -> str:
    """Return the text up to the token that ends the segment; no text spells it out by chance."""
    end = length(positions, limits)
    ender = positions[end].token if end < len(positions) else END
    return text.partition(ender)[0]
