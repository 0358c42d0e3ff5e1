"""A model in a GGUF file, run by llama.cpp in this process."""

import asyncio
import threading
import time
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from crag.answering.model_calls import ask
from crag.errors import ModelError
from crag.factory.doctor import examine
from crag.factory.parts import choose_model
from crag.generation import load_chat_model
from crag.generation.gguf_chat import GgufChat
from crag.generation.gguf_file import read_head
from crag.nodes.generate import Generate
from crag.runtime.environment import Environment
from crag.runtime.waiting import blocking
from crag.settings import Settings
from crag.testing import FakeQuoter
from tests.generation.tiny_gguf import write_tiny
from tests.nodes.test_generate import kinds, state

ASKED = [SystemMessage("Answer."), HumanMessage("Hello")]
ENDLESS = 3000
"""Tokens; the tiny model never ends by itself."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(file: Path) -> GgufChat:
    loaded = load_chat_model(f"file:{file}", context=4096, threads=1)
    assert isinstance(loaded, GgufChat)
    return loaded


def test_the_head_tells_what_the_model_is(file: Path) -> None:
    assert read_head(file) == ("llama", 4096, True, file.stat().st_size)


async def test_it_answers_alike_at_once_streamed_and_async(model: GgufChat) -> None:
    whole = model.invoke(ASKED, max_tokens=12)
    assert (len(whole.text), whole.usage_metadata["output_tokens"]) == (12, 12)  # type: ignore[index]
    pieces = [chunk.text for chunk in model.stream(ASKED, max_tokens=12)]
    assert ("".join(pieces), len(list(filter(None, pieces)))) == (whole.text, 12)
    assert (await model.ainvoke(ASKED, max_tokens=12)).text == whole.text
    told = [chunk.text async for chunk in model.astream(ASKED, max_tokens=12)]
    assert "".join(told) == whole.text
    assert ask(model.bind(max_tokens=3), ASKED).usage["output_tokens"] == 3


def test_a_base_model_completes_the_prompt_as_it_stands(file: Path, tmp_path: Path) -> None:
    base = write_tiny(tmp_path / "base.gguf", template="")
    with pytest.raises(ModelError, match=r"no chat template.*CRAG_FRAMING=raw"):
        load_chat_model(f"file:{base}")
    raw = load_chat_model(f"file:{file}", framing="raw", context=512, threads=1)
    reply = raw.invoke("Hello", max_tokens=4)
    assert reply.usage_metadata["input_tokens"] == len("Hello")  # type: ignore[attr-defined]
    assert len(reply.text) == 4


def test_a_prompt_beyond_the_context_is_an_event_and_the_strips_are_quoted(file: Path) -> None:
    small = load_chat_model(f"file:{file}", context=512, threads=1)
    given = state("Ada wrote it. " * 40)
    update = blocking(Generate(small, FakeQuoter()).run(given, Settings()))
    assert kinds(update) == ["model_failed"]
    assert "and the context 512: set CRAG_MODEL_CONTEXT" in update["events"][0]["detail"]
    assert update["answer"].startswith("“Ada wrote it.")


def is_free(model: GgufChat, within: float = 10.0) -> bool:
    """Return whether the model soon answers someone else."""
    start = time.monotonic()
    model.invoke(ASKED, max_tokens=1)
    return time.monotonic() - start < within


async def test_a_caller_that_is_cancelled_leaves_the_model_to_others(model: GgufChat) -> None:
    stream = model.astream(ASKED, max_tokens=ENDLESS)
    assert (await anext(aiter(stream))).text is not None
    task = asyncio.create_task(model.ainvoke(ASKED, max_tokens=ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await stream.aclose()  # type: ignore[attr-defined]
    assert await asyncio.to_thread(is_free, model)


def test_a_stream_that_is_left_ends(model: GgufChat) -> None:
    stream = model.stream(ASKED, max_tokens=ENDLESS)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert is_free(model)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_answer_that_takes_too_long_fails(model: GgufChat, *, is_async: bool) -> None:
    hurried = model.model_copy(update={"seconds": 0.0})
    call = hurried.bind(max_tokens=ENDLESS)
    with pytest.raises(ModelError, match="longer than 0 s"):
        await (call.ainvoke(ASKED) if is_async else asyncio.to_thread(call.invoke, ASKED))
    assert await asyncio.to_thread(is_free, model)


def test_callers_take_turns(model: GgufChat) -> None:
    expected = model.invoke(ASKED, max_tokens=20).text
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(model.invoke(ASKED, max_tokens=20).text))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert texts == [expected] * 5


def test_files_that_are_no_models_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        load_chat_model(f"file:{tmp_path / 'missing.gguf'}")
    broken = tmp_path / "broken.gguf"
    whole = file.read_bytes()
    for content in (b"", b"GGUF", b"hello" * 100, whole[:200], b"GGUF" + b"\xff" * 400):
        broken.write_bytes(content)
        with pytest.raises(ModelError, match="no GGUF file, or it is damaged"):
            load_chat_model(f"file:{broken}")
    broken.write_bytes(whole[:-3000])
    cut = load_chat_model(f"file:{broken}")
    with pytest.raises(ModelError, match=r"llama\.cpp cannot load it"):
        cut.invoke("Hello")


def test_doctor_says_what_an_answer_costs(file: Path) -> None:
    environment = Environment(model=f"file:{file}", model_context=2048, model_threads=1)
    assert isinstance(choose_model(environment), GgufChat)
    (quick,) = (one for one in examine(environment, use=False) if one.part == "answers")
    assert quick.state == "ready"
    assert quick.why.endswith("MB, context 2,048 tokens, 1 thread")
    (used,) = (one for one in examine(environment) if one.part == "answers")
    assert "an answer of 500 and 60 takes" in used.why
