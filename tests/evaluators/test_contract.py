"""One contract for the evaluators, by whatever name, class or folder they are loaded."""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from crag.errors import CragError, EvaluatorError
from crag.evaluators import (
    ChatEvaluator,
    CrossEncoderEvaluator,
    ReaderEvaluator,
    RerankEvaluator,
    T5Evaluator,
    load_evaluator,
)
from crag.papers.files import write_card
from crag.parts import Evaluator
from crag.testing import FakeChatModel, FakeEvaluator
from tests.loopback import serving
from tests.repeating import times
from tests.trained import TINY_T5, tiny_bert

QUESTION = "How old is the violin in Peru?"
TEXTS = [
    "The violin of Peru is forty years old.", "", "three short words", "Rain fell on it. " * 60,
    "x", " \n", "🙂 🙃", "東京は日本の首都です。", "Ωμέγα и кириллица", "\x00", "a </s> b", "<pad>",
    "T // a text with a title",
]  # fmt: skip
Make = Callable[[], Evaluator]


def graded_by_length(messages: list[BaseMessage]) -> AIMessage:
    """Grade texts by their length, as a chat model might."""
    found = re.findall(r'<passage number="(\d+)">\n(.*?)\n</passage>', messages[-1].text, re.DOTALL)
    grades = [f'{{"passage": {number}, "relevance": {len(text) % 11}}}' for number, text in found]
    return AIMessage(f'{{"grades": [{", ".join(grades)}]}}')


def reranked(sent: dict[str, Any]) -> dict[str, Any]:
    """Score texts by their length, as a rerank API might."""
    lengths = [len(text) % 11 / 10 for text in sent["documents"]]
    return {"results": [{"index": n, "relevance_score": one} for n, one in enumerate(lengths)]}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Make]]:
    """Return what makes each kind."""
    folder = tiny_bert(tmp_path_factory.mktemp("whole"), outputs=1)
    model: Any = RunnableLambda(graded_by_length)
    with serving(reranked) as server:
        yield {
            "t5": lambda: T5Evaluator(TINY_T5),
            "cross-encoder": lambda: CrossEncoderEvaluator(folder),
            "reader": ReaderEvaluator.packaged,
            "chat": lambda: ChatEvaluator(model),
            "rerank": lambda: RerankEvaluator(f"{server.url}/rerank"),
        }


@pytest.fixture(scope="module", params=["t5", "cross-encoder", "reader", "chat", "rerank"])
def make(request: pytest.FixtureRequest, kinds: Mapping[str, Make]) -> Make:
    return cache(kinds[request.param])


def close(scores: Sequence[float]) -> Any:
    return pytest.approx(scores, abs=1e-4)


def test_it_satisfies_the_protocol(make: Make) -> None:
    evaluator = make()
    assert isinstance(evaluator, Evaluator)
    assert evaluator.thresholds["lower"] <= evaluator.thresholds["upper"]
    assert evaluator.score(QUESTION, []) == []
    assert evaluator.score(QUESTION, ["", " \t\n"]) == [-1.0, -1.0]


@given(st.text(max_size=30), st.lists(st.text(max_size=40), max_size=5))
@example(QUESTION, ["09"])
def test_any_text_has_a_score(make: Make, question: str, texts: list[str]) -> None:
    scores = make().score(question, texts)
    assert len(scores) == len(texts)
    assert all(math.isfinite(score) for score in scores)
    assert all(score == -1 for score, text in zip(scores, texts, strict=True) if not text.strip())


def test_neither_order_nor_batch_matters(make: Make) -> None:
    expected = make().score(QUESTION, TEXTS)
    for number in range(times(3, 30)):
        order = random.Random(number).sample(range(len(TEXTS)), len(TEXTS))  # noqa: S311 - orders
        size = [1, 7, 3, 2, 32][number % 5]
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        asked = [make().score(QUESTION, [TEXTS[one] for one in part]) for part in parts]
        assert list(chain.from_iterable(asked)) == close([expected[one] for one in order])


def test_very_long_texts_and_questions(make: Make) -> None:
    scores = make().score(QUESTION, ["word " * 20_000, "x" * 50_000])
    assert all(map(math.isfinite, [*scores, *make().score("why " * 9999, ["a text"])]))


def test_threads_share_one_that_is_not_loaded_yet(kinds: Mapping[str, Make], make: Make) -> None:
    name = next(name for name, one in kinds.items() if one is make.__wrapped__)  # type: ignore[attr-defined]
    fresh = kinds[name]()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: fresh.score(QUESTION, [text])[0], TEXTS * 2))
    assert found == close(make().score(QUESTION, TEXTS) * 2)


KINDS = {"default": ReaderEvaluator, "reader": ReaderEvaluator, "chat": ChatEvaluator}


@pytest.mark.parametrize("name", KINDS)
def test_every_name_is_an_evaluator(name: str) -> None:
    evaluator = load_evaluator(name, model=FakeChatModel())
    assert type(evaluator) is KINDS[name]
    assert isinstance(evaluator, Evaluator)


def test_a_chat_evaluator_needs_a_model() -> None:
    with pytest.raises(EvaluatorError, match="asks a chat model: set OPENAI_API_KEY"):
        load_evaluator("chat")


class Mine(FakeEvaluator):
    """An evaluator of the user's own."""


class NeedsMore(FakeEvaluator):
    """An evaluator that cannot be made of nothing."""

    def __init__(self, needed: str) -> None:
        super().__init__(float(needed))


def test_an_evaluator_of_ones_own_is_named_by_its_class() -> None:
    assert isinstance(load_evaluator(f"{__name__}:Mine"), Mine)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no_such_module:Mine", "No module named"),
        (f"{__name__}:NeedsMore", "missing 1 required positional argument"),
        ("pathlib:Path", "it must be, or make, a Evaluator"),
    ],
)
def test_a_class_that_is_none_is_told(name: str, problem: str) -> None:
    with pytest.raises(CragError, match=problem):
        load_evaluator(name)


def test_unknown_names_and_folders_without_an_evaluator(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"no evaluator or folder 'redaer'.*did you mean"):
        load_evaluator("redaer")
    with pytest.raises(EvaluatorError, match="no evaluator or folder"):
        load_evaluator(str(tmp_path / "missing"))
    for broken in (None, "{", "[]"):
        if broken:
            (tmp_path / "config.json").write_text(broken)
        with pytest.raises(EvaluatorError, match=r"config\.json cannot be read.*crag train"):
            load_evaluator(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (None, "holds no card.json"),
        ({"kind": "cross_encoder"}, "holds a cross_encoder for 320 tokens"),
        ({"max_length": 128}, "at least 256"),
    ],
)
def test_a_folder_with_a_graph_and_another_card_is_refused(
    tmp_path: Path, changes: dict[str, object] | None, problem: str
) -> None:
    (tmp_path / "model.onnx").touch()
    if changes:
        write_card(tmp_path, ReaderEvaluator.packaged().card.model_copy(update=changes))
    with pytest.raises(EvaluatorError, match=problem):
        load_evaluator(str(tmp_path))
