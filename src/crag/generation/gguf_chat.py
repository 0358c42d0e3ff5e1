"""A chat model in this process: a GGUF file, run by llama.cpp (package `xllamacpp`).

The package computes in threads of its own and passes each token to a callback. Callers take turns;
one that is cancelled, or whose time is over, stops its generation at the next token.
"""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import (
    agenerate_from_stream,
    generate_from_stream,
)
from langchain_core.messages import (
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    convert_to_openai_messages,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from crag.errors import ModelError
from crag.extras import require
from crag.generation.chat import REPEATED
from crag.generation.gguf_file import read_head
from crag.generation.raw_completion import raw_prompt

CONTEXT = 8192
"""Tokens of prompt and answer together, unless set otherwise or the model knows fewer."""
LONGEST_ANSWER = 1024
"""Tokens, unless `max_answer_tokens` says otherwise: a small model may not stop by itself."""
SECONDS = 300.0
"""For one answer, from the moment it is this caller's turn: a processor is slower than a server."""
_BATCH = 256
"""Tokens of a prompt that are read between two looks at whether the caller is still there."""
_POLL = 0.1
"""Seconds after which a caller that waits for its turn looks whether it was cancelled."""
_TOO_LONG = "exceed_context_size_error"


class Speed(NamedTuple):
    """Tokens a second."""

    read: float
    written: float


class GgufChat(BaseChatModel):
    """Answer with the model in the file `path`, which loads on first use.

    With `framing` "raw" the messages are completed as one string, without a chat template. A prompt
    that is longer than the context, a file that cannot be loaded and an answer that takes longer
    than `seconds` raise a `ModelError`, which a graph records as an event before it quotes.
    """

    path: Path
    context: int = CONTEXT
    threads: int = 0
    """0 stands for one for each processor."""
    seconds: float = SECONDS
    framing: str = "chat"

    @property
    def _llm_type(self) -> str:
        return "gguf"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"path": str(self.path), "context": self.context, "framing": self.framing}

    def speed(self) -> Speed:
        """Measure how fast it reads and writes, with a prompt of a few hundred tokens.

        Raises:
            ModelError: it cannot answer.
        """
        prompt = HumanMessage("Count aloud, on and on. " + "one two three four five " * 40)
        timings = self.invoke([prompt], max_tokens=24).response_metadata.get("timings", {})
        return Speed(
            timings.get("prompt_per_second", 0.0), timings.get("predicted_per_second", 0.0)
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        items: SimpleQueue[Any] = SimpleQueue()
        left, ends = threading.Event(), None
        self._begin(self._request(messages, stop, kwargs), items.put, left)
        try:
            while True:
                try:
                    item = items.get(timeout=_left(ends))
                except Empty:
                    raise self._too_slow() from None
                if item is _END:
                    return
                ends = ends or time.monotonic() + self.seconds
                if (chunk := self._chunk(item)) is not None:
                    if run_manager and chunk.text:
                        run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
        finally:
            left.set()

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        loop, items = asyncio.get_running_loop(), asyncio.Queue[Any]()
        left, ends = threading.Event(), None

        def put(item: object) -> None:
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:  # The loop has ended, and the caller with it.
                left.set()

        self._begin(self._request(messages, stop, kwargs), put, left)
        try:
            while True:
                try:
                    item = await asyncio.wait_for(items.get(), _left(ends))
                except TimeoutError:
                    raise self._too_slow() from None
                if item is _END:
                    return
                ends = ends or time.monotonic() + self.seconds
                if (chunk := self._chunk(item)) is not None:
                    if run_manager and chunk.text:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
        finally:
            left.set()

    def _request(
        self, messages: list[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # Calls back while a prompt is read, so that it can be ended.
            "temperature": 0,
            "max_tokens": options.get("max_tokens") or LONGEST_ANSWER,
            "stop": [*(stop or ()), REPEATED],
        }
        if self.framing == "raw":
            return request | {"prompt": raw_prompt(messages)}
        return request | {"messages": convert_to_openai_messages(messages)}

    def _begin(
        self, request: dict[str, Any], put: Callable[[Any], None], left: threading.Event
    ) -> None:
        """Answer in a thread, which passes on llama.cpp's items, or the error that ended it."""

        def work() -> None:
            try:
                engine = _engine(self.path, self.context, self.threads)
                engine.answer(request, put, left)
            except ModelError as error:
                put(error)
            finally:
                put(_END)

        threading.Thread(target=work, name="gguf", daemon=True).start()

    def _chunk(self, item: Any) -> ChatGenerationChunk | None:
        """Read an item of llama.cpp; None if it has nothing for the caller.

        Raises:
            ModelError: it is an error.
        """
        if isinstance(item, ModelError):
            raise item
        if not isinstance(item, Mapping):
            return None
        error = item.get("error")
        if isinstance(error, Mapping):
            raise self._failed(error)
        choice = (item.get("choices") or [{}])[0]
        text = (choice.get("delta") or {}).get("content") or choice.get("text") or ""
        usage = item.get("usage")
        if not (text or usage or choice.get("finish_reason")):
            return None
        told = {"finish_reason": choice.get("finish_reason"), "timings": item.get("timings")}
        metadata = {name: value for name, value in told.items() if value}
        message = AIMessageChunk(content=text, response_metadata=metadata)
        if usage:
            read, written = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
            message.usage_metadata = UsageMetadata(
                input_tokens=read, output_tokens=written, total_tokens=read + written
            )
        return ChatGenerationChunk(message=message)

    def _failed(self, error: Mapping[str, Any]) -> ModelError:
        message = str(error.get("message"))
        if error.get("type") == _TOO_LONG:
            message = (
                f"the prompt has {error.get('n_prompt_tokens', 0):,} tokens, and the context "
                f"{error.get('n_ctx', 0):,}: set CRAG_MODEL_CONTEXT to more, or keep fewer strips"
            )
        return ModelError(self._name, "failed", message)

    def _too_slow(self) -> ModelError:
        message = f"it took longer than {self.seconds:g} s; a smaller model answers sooner"
        return ModelError(self._name, "failed", message)

    @property
    def _name(self) -> str:
        return f"file:{self.path}"


_END: Final = object()
_TURN: Final = object()
"""Tells a caller that its turn has come, when its time begins."""


class _Engine:
    """llama.cpp with one model, which answers one caller after the other."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        require("llama", "a model in a GGUF file", "xllamacpp")
        import xllamacpp

        params = xllamacpp.CommonParams()  # pyright: ignore[reportAttributeAccessIssue] - compiled
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.n_batch = context, 1, _BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup, params.verbosity, params.offline = False, -1, True
        # It opens a port that this program does not use, but other programs on the machine could.
        params.api_keys = [secrets.token_urlsafe()]
        params.ui = params.endpoint_slots = False
        try:
            self._server = xllamacpp.Server(params)  # pyright: ignore[reportAttributeAccessIssue]
        except RuntimeError as error:
            message = (
                "llama.cpp cannot load it: it is damaged, of an architecture that llama.cpp does "
                "not know, or too large for the memory"
            )
            raise ModelError(f"file:{path}", "failed", message) from error
        self._turn = threading.Lock()

    def answer(
        self, request: dict[str, Any], put: Callable[[Any], None], left: threading.Event
    ) -> None:
        """Answer when it is the caller's turn, until it has left."""
        while not self._turn.acquire(timeout=_POLL):
            if left.is_set():
                return
        try:
            put(_TURN)

            def tell(item: Any) -> bool:
                put(item)
                return left.is_set()

            ask = self._server.handle_completions if "prompt" in request else None
            (ask or self._server.handle_chat_completions)(request, tell)
        except (RuntimeError, ValueError) as error:
            raise ModelError("file", "failed", str(error)) from error
        finally:
            self._turn.release()


_LOADING = threading.Lock()


def _engine(path: Path, context: int, threads: int) -> _Engine:
    """Return the engine of a file; models of this process that name the same one share it."""
    with _LOADING:
        return _load(path, context, threads)


@lru_cache(maxsize=2)
def _load(path: Path, context: int, threads: int) -> _Engine:
    known = read_head(path).context
    return _Engine(path, min(context, known or context), threads or os.cpu_count() or 1)


def _left(ends: float | None) -> float | None:
    return None if ends is None else max(0.0, ends - time.monotonic())


def load_gguf(
    path: Path, *, context: int = CONTEXT, threads: int = 0, framing: str = "chat"
) -> GgufChat:
    """Return the model in a GGUF file; only the head of the file is read.

    Raises:
        ModelError: there is no such file, it is no GGUF file, or it has no chat template and
            `framing` is "chat".
        MissingPackageError: the extra `llama` is not installed.
    """
    require("llama", "a model in a GGUF file", "xllamacpp")
    path = path.expanduser().resolve()
    head = read_head(path)
    if framing == "chat" and not head.has_template:
        message = (
            "it has no chat template, as a base model; name an instructed one, or set "
            "CRAG_FRAMING=raw"
        )
        raise ModelError(f"file:{path}", "unknown", message)
    return GgufChat(path=path, context=context, threads=threads, framing=framing)
