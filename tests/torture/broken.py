"""Parts that break at random, in every way that foreign code can: what they raise and return.

A `Saboteur` draws the faults of one question. Each call of a part asks it first; what it did to the
call is kept in `told` if the run has to have an event for it.
"""

import asyncio
import builtins
import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import GeneratorType
from typing import Any, NamedTuple, NoReturn

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from pydantic import ConfigDict, PrivateAttr

from crag.parts import Candidate, Decision, Hit, Page, Quotation
from crag.reading import Reading
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeQuoter,
    FakeReader,
    FakeReadingEvaluator,
    FakeReflection,
    FakeSearcher,
)

LONE = "\ud83d"
"""Half of a surrogate pair, which no encoding of Unicode can write."""
SURROGATES = f"half {LONE} of a pair \udcff and \ude00\ud83d turned round"


class UnprintableError(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("str() of this fails")

    __repr__ = __str__


class Hostile:
    """An object whose every use raises."""

    def _raise(self, *_: object, **__: object) -> NoReturn:
        raise UnprintableError

    __str__ = __repr__ = __len__ = __iter__ = __bool__ = __float__ = __int__ = __eq__ = _raise
    __hash__ = __getitem__ = __contains__ = __call__ = __index__ = __await__ = _raise

    def __getattr__(self, name: str) -> NoReturn:
        raise UnprintableError(name)


class OddText(str):
    """A text whose own methods raise."""

    __slots__ = ()

    def __str__(self) -> str:
        raise UnprintableError

    strip = split = encode = lower = __len__ = __getitem__ = __str__  # type: ignore[assignment]


def _classes() -> list[type[Exception]]:
    """Return every exception of Python's own that a part can raise and a run must survive."""
    found = [one for one in vars(builtins).values() if isinstance(one, type)]
    errors = [one for one in found if issubclass(one, Exception) and not issubclass(one, Warning)]
    odd = {UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError, ExceptionGroup}
    return [one for one in dict.fromkeys(errors) if one not in odd]


MESSAGES = ("", "it broke", SURROGATES, "\x1b[31mred\x1b[0m\r\n\x00", "x" * 100_000)
RAISED: tuple[Callable[[str], BaseException], ...] = (
    *_classes(),
    lambda text: UnicodeDecodeError("utf-8", b"\xff", 0, 1, text),
    lambda text: UnicodeEncodeError("utf-8", LONE, 0, 1, text),
    lambda text: UnicodeTranslateError(LONE, 0, 1, text),
    lambda text: ExceptionGroup(text, [OSError(text), UnprintableError()]),
    lambda _: UnprintableError(),
    lambda _: UserWarning(Hostile()),
    asyncio.CancelledError,
)
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: "",
    lambda: "a text",
    lambda: SURROGATES,
    lambda: b"bytes",
    lambda: 0,
    lambda: -7,
    lambda: 1.5,
    lambda: math.nan,
    lambda: math.inf,
    lambda: True,
    dict,
    lambda: {"a": 1},
    lambda: {0: [None]},
    list,
    lambda: [None],
    lambda: [[], {}],
    lambda: ["a", "b"],
    lambda: [math.nan, math.inf, -math.inf],
    lambda: [10**400],
    lambda: [Hostile()],
    lambda: {"page_content", "metadata"},
    lambda: itertools.repeat(None),
    lambda: (number for number in range(3)),
    lambda: Document,
    lambda: NotImplemented,
    threading.Lock,
    object,
    Hostile,
)
ODD_VALUES: tuple[Any, ...] = (
    None, 7, -1, 10**400, math.nan, -math.inf, True, b"\xff", SURROGATES, "", " ", "x" * 5000, {},
    {"a": {1: SURROGATES}}, [None], [[[]]], (), object, Hostile(), OddText("odd"), 1 + 2j,
)  # fmt: skip


_USABLE: dict[str, tuple[type, ...]] = {"model": (str,), "evaluator": (GeneratorType,)}
"""What may serve after all: any text is a query or a question, any numbers are scores."""


class Told(NamedTuple):
    """A fault that has to be on record."""

    part: str
    what: str


class Saboteur:
    """Draws the faults of one question; with `rate` 0 it draws none."""

    def __init__(self, seed: object, rate: float) -> None:
        self.draw = random.Random(f"{seed}")  # noqa: S311 - tests repeat
        self._rate = rate
        self._lock = threading.Lock()
        self.told: list[Told] = []
        self.faults = 0

    def strikes(self) -> bool:
        """Draw whether this call breaks; now and then it only takes its time."""
        with self._lock:
            broken = self.draw.random() < self._rate
            self.faults += broken
        return broken

    def pick(self, choices: Sequence[Any]) -> Any:
        with self._lock:
            return self.draw.choice(choices)

    def odd(self) -> Any:
        return self.pick(ODD_VALUES)

    def call(
        self,
        part: str,
        right: Any,
        odd: Callable[[Any], Any],
        spoil: Sequence[Callable[[], Any]] = (),
    ) -> Any:
        """Return the right reply or a broken one; one of `spoil` may also change what was given."""
        if not self.strikes():
            return right
        if spoil and self.pick((True, False)):
            self.pick(spoil)()
        return self.reply(part, right, odd)

    def reply(self, part: str, right: Any, odd: Callable[[Any], Any]) -> Any:
        """Return what a broken call returns, or raise: `odd` breaks a right reply from within."""
        kind = self.pick(("raises", "value", "odd", "odd", "slow", "shorter", "longer"))
        if kind == "slow":
            time.sleep(self.draw.random() / 200)
            return right
        if kind == "raises":
            error = self.pick(RAISED)(self.pick(MESSAGES))
            self.told.append(Told(part, f"raised {type(error).__name__}"))
            raise error
        if kind == "value":
            value = self.pick(VALUES)()
            if value != right and not isinstance(value, _USABLE.get(part, ())):
                self.told.append(Told(part, f"returned {type(value).__name__}"))
            return value
        if kind == "shorter" and isinstance(right, list):
            return right[1:]
        if kind == "longer" and isinstance(right, list):
            return [*right, *right]
        return odd(right)


def _some(saboteur: Saboteur, items: Sequence[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Change some of the items."""
    return [change(item) if saboteur.draw.random() < 0.5 else item for item in items]


def _with_odd_field(saboteur: Saboteur, item: Any) -> Any:
    """Give a named tuple one field that is not what it says."""
    return item._replace(**{saboteur.pick(item._fields): saboteur.odd()})


def _with_odd_key(saboteur: Saboteur, item: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(item)
    name = saboteur.pick(sorted(changed))
    if saboteur.pick((True, False)):
        del changed[name]
    else:
        changed[name] = saboteur.odd()
    return changed


def _odd_document(saboteur: Saboteur, document: Document) -> Any:
    metadata: dict[Any, Any] = dict(document.metadata)
    names = ("title", "source", "url", "position", "lines", "section", "id", "own", 7)
    metadata[saboteur.pick(names)] = saboteur.odd()
    metadata["lines"] = saboteur.pick(("1-999999999999999", "3-1 x", "7", "-", "2 2 2", ""))
    metadata["places"] = saboteur.pick((f"3*{10**30}", "1*-1", "x*2", "*", "2 2 2"))
    match saboteur.pick(("metadata", "text", "id", "none")):
        case "metadata":
            return Document.model_construct(
                page_content=document.page_content, metadata=metadata, id=None
            )
        case "text":
            return Document.model_construct(page_content=saboteur.odd(), metadata=metadata)
        case "id":
            text = f"{document.page_content} {SURROGATES}"
            return Document.model_construct(page_content=text, metadata={}, id=saboteur.odd())
    return Document.model_construct(page_content=document.page_content, metadata=saboteur.odd())


class BrokenRetriever(BaseRetriever):
    """A retriever that breaks."""

    documents: list[Document]
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="allow")
    _saboteur: Saboteur = PrivateAttr()

    def __init__(self, saboteur: Saboteur, documents: list[Document]) -> None:
        super().__init__(documents=documents)
        self._saboteur = saboteur

    @property
    def run_settings(self) -> Any:
        """Return which settings it takes, or nonsense."""
        saboteur = self._saboteur
        if not saboteur.strikes():
            return ()
        value = saboteur.pick((None, 7, "k", ("k", "nothing"), (7,), [Hostile()], {"k": 1}))
        return value() if callable(value) else value

    @property
    def languages(self) -> Any:
        """Return which languages it reads, or nonsense."""
        return self._saboteur.odd() if self._saboteur.strikes() else ("en",)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> Any:
        del query, run_manager
        saboteur = self._saboteur
        return saboteur.call(
            "retriever",
            list(self.documents),
            lambda found: _some(saboteur, found, lambda one: _odd_document(saboteur, one)),
        )


def _odd_thresholds(saboteur: Saboteur) -> Any:
    odd = saboteur.odd()
    choices: tuple[Any, ...] = (
        {}, {"upper": 0.5}, {"lower": odd, "upper": 0.5}, {"upper": -0.5, "lower": 0.5}, odd, None,
        {"upper": math.nan, "lower": math.nan},
    )  # fmt: skip
    return saboteur.pick(choices)


class _BrokenJudge:
    """What broken evaluators share."""

    saboteur: Saboteur

    @property
    def thresholds(self) -> Any:
        """Return thresholds, or nonsense."""
        if not self.saboteur.strikes():
            return {"upper": 0.5, "lower": -0.5}
        value = _odd_thresholds(self.saboteur)
        if value is None:
            self.saboteur.told.append(Told("evaluator", "has no thresholds"))
            raise UnprintableError
        return value

    @property
    def languages(self) -> Any:
        """Return which languages it reads, or nonsense."""
        return self.saboteur.odd() if self.saboteur.strikes() else ("en",)

    def broken_score(self, right: list[float], texts: Any) -> Any:
        return self.saboteur.call(
            "evaluator",
            right,
            lambda scores: _some(self.saboteur, scores, lambda _: self.saboteur.odd()),
            (texts.clear, texts.reverse, lambda: texts.append(None)),
        )


class BrokenEvaluator(_BrokenJudge):
    """An evaluator that breaks."""

    def __init__(self, saboteur: Saboteur, score: float) -> None:
        self.saboteur = saboteur
        self._fake = FakeEvaluator({"Lovelace": score, "Babbage": score}, otherwise=0.6)

    def score(self, question: str, texts: Any) -> Any:
        """Return the scores, or break."""
        return self.broken_score(self._fake.score(question, list(texts)), texts)


class BrokenReadingEvaluator(_BrokenJudge):
    """An evaluator that reads, and breaks."""

    def __init__(self, saboteur: Saboteur, score: float) -> None:
        self.saboteur = saboteur
        self._fake = FakeReadingEvaluator(
            {"Lovelace": score, "Babbage": score}, "published program", otherwise=0.6
        )

    @property
    def quote_threshold(self) -> Any:
        """Return the threshold, or nonsense."""
        return self.saboteur.odd() if self.saboteur.strikes() else 0.5

    def score(self, question: str, texts: Any) -> Any:
        """Return the scores, or break."""
        return self.broken_score(self._fake.score(question, list(texts)), texts)

    def read(self, question: str, passages: Any) -> Any:
        """Return the readings, or break."""
        right = self._fake.read(question, list(passages))
        saboteur = self.saboteur

        def odd(readings: list[Reading]) -> list[Any]:
            return _some(saboteur, readings, lambda one: _with_odd_key(saboteur, one))

        spoil = (passages.clear, passages.reverse, lambda: passages.append(None))
        return saboteur.call("evaluator", right, odd, spoil)


class BrokenSearcher(FakeSearcher):
    """A searcher that breaks."""

    def __init__(self, saboteur: Saboteur, hits: Sequence[Hit]) -> None:
        super().__init__(hits)
        self._saboteur = saboteur

    def search(self, query: str, limit: int) -> Any:
        """Return hits, or break."""
        right, saboteur = super().search(query, limit), self._saboteur
        return saboteur.call(
            "searcher",
            right,
            lambda hits: _some(saboteur, hits, lambda hit: _with_odd_field(saboteur, hit)),
        )

    async def asearch(self, query: str, limit: int) -> Any:
        """Do the same."""
        await asyncio.sleep(0)
        return self.search(query, limit)


class BrokenReader(FakeReader):
    """A page reader that breaks."""

    def __init__(self, saboteur: Saboteur, pages: Mapping[str, Sequence[str]]) -> None:
        super().__init__(pages)
        self._saboteur = saboteur

    def read(self, urls: Any, limits: Any) -> Any:
        """Return pages, or break."""
        right, saboteur = super().read(list(urls), limits), self._saboteur

        def odd(pages: list[Page]) -> list[Any]:
            return _some(saboteur, pages, lambda page: _with_odd_field(saboteur, page))

        spoil = (urls.clear, urls.reverse, lambda: urls.append(None))
        return saboteur.call("reader", right, odd, spoil)

    async def aread(self, urls: Any, limits: Any) -> Any:
        """Do the same."""
        await asyncio.sleep(0)
        return self.read(urls, limits)


class BrokenQuoter(FakeQuoter):
    """A quoter that breaks."""

    def __init__(self, saboteur: Saboteur) -> None:
        super().__init__()
        self._saboteur = saboteur

    def quote(self, question: str, strips: Any) -> Any:
        """Return quotations, or break."""
        right, saboteur = super().quote(question, strips), self._saboteur

        def odd(quotations: list[Quotation]) -> list[Any]:
            index = saboteur.pick((-1, 5, 10**20, 0.5, "0", None))
            placed = ((0, 10**9), (-5, 2), (3, 1), ("a", "b"), (0,), None, "ab")
            changes = {"strip": index, "place": saboteur.pick(placed), "span": (0, 10**9)}
            name = saboteur.pick(sorted(changes))
            if saboteur.pick((True, False)):
                return [one._replace(**{name: changes[name]}) for one in quotations]
            return [_with_odd_field(saboteur, one) for one in quotations]

        spoil = (strips.clear, strips.reverse, *(one.clear for one in strips[:1]))
        return saboteur.call("quoter", right, odd, spoil)


def _odd_message(saboteur: Saboteur, message: AIMessage) -> Any:
    """Break one attribute of a message behind pydantic's back, as `model_construct` does."""
    counts: tuple[Any, ...] = (
        {}, {"input_tokens": None}, {"input_tokens": "many", "output_tokens": -5}, {7: 7}, "usage",
        {"input_tokens": 10**400, "output_tokens": math.nan}, saboteur.odd(),
    )  # fmt: skip
    contents: tuple[Any, ...] = (
        None, [], [{}], [{"type": "image_url", "image_url": SURROGATES}], [None, 7], ["a", ["b"]],
        [{"type": "text"}], [{"type": "text", "text": None}], SURROGATES, saboteur.odd(),
    )  # fmt: skip
    changes = {
        "usage_metadata": saboteur.pick(counts),
        "content": saboteur.pick(contents),
        "additional_kwargs": saboteur.pick((None, {"refusal": Hostile()}, {"refusal": 7}, [])),
        "response_metadata": saboteur.pick(
            (None, {"finish_reason": []}, {"finish_reason": Hostile()}, "stop", {"stop_reason": 7})
        ),
        "id": saboteur.odd(),
    }
    name = saboteur.pick(sorted(changes))
    object.__setattr__(message, "__dict__", {**message.__dict__, name: changes[name]})
    return message


class BrokenModel(FakeChatModel):
    """A chat model that breaks within LangChain's interface."""

    _saboteur: Saboteur = PrivateAttr()

    def __init__(self, saboteur: Saboteur) -> None:
        super().__init__(replies=["Ada Lovelace did [1]."])
        self._saboteur = saboteur

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        right = super()._generate(messages, stop, run_manager, **kwargs)
        saboteur = self._saboteur

        def odd(result: ChatResult) -> Any:
            message = _odd_message(saboteur, AIMessage("Ada Lovelace did [1]."))
            made = ChatGeneration.model_construct(message=message, text="", generation_info=None)
            return result.model_copy(update={"generations": [made]})

        reply: ChatResult = saboteur.call("model", right, odd)
        return reply

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Any:
        saboteur = self._saboteur
        for chunk in super()._stream(messages, stop, run_manager, **kwargs):

            def odd(_: Any) -> Any:
                message: Any = _odd_message(saboteur, AIMessageChunk("Ada"))  # type: ignore[arg-type]
                return ChatGenerationChunk.model_construct(message=message, text="")

            yield saboteur.call("model", chunk, odd)


def broken_runnable(saboteur: Saboteur) -> Any:
    """Return a Runnable in the place of a chat model, which may return anything."""

    def call(_: Any) -> Any:
        if not saboteur.strikes():
            return "Ada Lovelace did [1]."
        right = AIMessage("Ada Lovelace did [1].")
        return saboteur.reply("model", right, lambda one: _odd_message(saboteur, one))

    async def acall(messages: Any) -> Any:
        await asyncio.sleep(0)
        return call(messages)

    return RunnableLambda(call, afunc=acall)


class BrokenReflection(FakeReflection):
    """A back end of reflection that breaks."""

    def __init__(self, saboteur: Saboteur, candidates: Any) -> None:
        super().__init__(candidates)
        self._saboteur = saboteur

    @property
    def approximation(self) -> Any:
        """Return how critiques are approximated, or nonsense."""
        if not self._saboteur.strikes():
            return ""
        if self._saboteur.pick((True, False)):
            raise UnprintableError
        return self._saboteur.odd()

    def decide(self, prefixes: Any) -> Any:
        """Return decisions, or break."""
        right, saboteur = super().decide(list(prefixes)), self._saboteur
        if not saboteur.strikes():
            return right

        def odd(decisions: list[Decision]) -> list[Any]:
            return _some(saboteur, decisions, lambda one: _with_odd_field(saboteur, one))

        return saboteur.reply("reflection", right, odd)

    def candidates(self, continuations: Any, limits: Any) -> Any:
        """Return candidates, or break."""
        right, saboteur = super().candidates(list(continuations), limits), self._saboteur
        if not saboteur.strikes():
            return right

        def odd(candidates: list[Candidate]) -> list[Any]:
            def change(one: Candidate) -> Any:
                if saboteur.pick((True, False)):
                    shares = {"[Relevant]": saboteur.odd(), saboteur.pick(("x", LONE)): 0.5}
                    return one._replace(relevance=shares)
                return _with_odd_field(saboteur, one)

            return _some(saboteur, candidates, change)

        return saboteur.reply("reflection", right, odd)
