"""Reflection behind a completions server: the model's numbers, the protocol, and failures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crag.errors import ModelError
from crag.parts import Candidate, SegmentLimits, continuations
from crag.reflection.backends.completions import CompletionsReflection
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection.driver import counting
from crag.reflection_tokens import NO_RETRIEVAL, PAD, RELEVANT, RETRIEVE, TOKENS
from tests.loopback import serving
from tests.reflection.backends.completions_server import CompletionsServer, completing
from tests.reflection.backends.tiny_llama import (
    TINY_LLAMA,
    mixed,
    one_core,
    passage,
    question,
    tokenizer,
)

SHORT = SegmentLimits(24)
WHOLE = SegmentLimits(24, whole_answer=True)
KEY = "the-key-of-somebody"
ALL = 999
"""More tokens than the vocabulary has."""
KETTLE = continuations(question("kettle"), [passage("kettle")])


@pytest.fixture(scope="module", autouse=True)
def _one_core() -> Iterator[None]:
    with one_core():
        yield


@pytest.fixture(scope="module")
def running() -> Iterator[CompletionsServer]:
    with completing(TINY_LLAMA) as server:
        yield server


@pytest.fixture
def server(running: CompletionsServer) -> CompletionsServer:
    running.requests.clear()
    running.most_listed, running.reply, running.is_llama_cpp = None, None, False
    return running


@pytest.fixture(scope="module")
def local() -> TransformersReflection:
    return TransformersReflection(TINY_LLAMA)


def client(url: str, **options: Any) -> CompletionsReflection:
    given: Any = {"retries": 0, "timeout": 30} | options
    return CompletionsReflection("tiny", base_url=url, **given)


def same(found: list[Candidate], expected: list[Candidate]) -> None:
    assert len(found) == len(expected) > 0
    for left, right in zip(found, expected, strict=True):
        assert (left.text, left.tokens, left.ending) == (right.text, right.tokens, right.ending)
        assert left.mean_log_probability == pytest.approx(right.mean_log_probability, abs=1e-4)
        for group in ("relevance", "support", "utility"):
            ours, theirs = getattr(left, group), getattr(right, group)
            assert (ours is None) is (theirs is None)
            for token, probability in (theirs or {}).items():
                # A member that is not listed is less likely than all that are.
                assert (ours or {}).get(token, 0.0) == pytest.approx(probability, abs=1e-4)


@pytest.mark.parametrize(
    "limits", [SHORT, WHOLE, SegmentLimits(7), SegmentLimits(25, whole_answer=True, is_draft=True)]
)
def test_it_gives_the_numbers_of_the_same_model_in_this_process(
    server: CompletionsServer, local: TransformersReflection, limits: SegmentLimits
) -> None:
    remote, given = client(server.url, top=ALL), mixed()
    same(remote.candidates(given, limits), local.candidates(given, limits))
    prefixes = [each.prefix for each in given]
    for ours, theirs in zip(remote.decide(prefixes), local.decide(prefixes), strict=True):
        assert ours.emitted == theirs.emitted
        for token, probability in ours.retrieve.items():
            assert probability == pytest.approx(theirs.retrieve[token], abs=1e-4)
    forced = [prompt.endswith(NO_RETRIEVAL) for prompt in server.requests[-2]["prompt"]]
    assert any(forced) != limits.is_draft


def test_the_form_of_llama_cpp_is_read_alike(server: CompletionsServer) -> None:
    expected = client(server.url, top=ALL).candidates(mixed(), SHORT)
    server.is_llama_cpp = True
    same(client(server.url, top=ALL).candidates(mixed(), SHORT), expected)


def test_what_is_asked(server: CompletionsServer) -> None:
    remote = client(server.url)
    with counting() as spending:
        remote.candidates(mixed()[:2], SHORT)
        remote.candidates(KETTLE, WHOLE)
        remote.decide([question("lantern")])
    asked = [request for request in server.requests if request["path"] == "/v1/completions"]
    assert len([one for one in server.requests if one["path"] == "/tokenize"]) == len(TOKENS) + 1
    round_, whole, decision = asked
    assert spending["llm_calls"] == 3
    assert [one.count("</paragraph>") for one in round_["prompt"]] == [1, 1]
    assert (round_["max_tokens"], round_["logprobs"], round_["temperature"]) == (24, 20, 0)
    assert (round_["skip_special_tokens"], round_["return_tokens_as_token_ids"]) == (False, True)
    ids = tokenizer().convert_tokens_to_ids(list(RETRIEVE))
    assert sorted(round_["stop_token_ids"]) == sorted(ids)
    assert "stop_token_ids" not in whole
    assert decision["max_tokens"] == 1


def test_members_that_are_not_listed_are_absent(
    server: CompletionsServer, local: TransformersReflection
) -> None:
    server.most_listed = 5
    [found], [full] = client(server.url).candidates(KETTLE, SHORT), local.candidates(KETTLE, SHORT)
    assert found.text == full.text
    assert found.utility is not None
    assert full.utility is not None
    assert 0 < len(found.utility) < len(full.utility)
    server.most_listed = 3
    with pytest.raises(ModelError, match=r"3 log-probabilities.*--max-logprobs"):
        client(server.url).decide([question("kettle")])


@pytest.mark.parametrize("lacking", [TOKENS, TOKENS[-1:]], ids=["all", "one"])
def test_a_model_without_the_tokens(tmp_path: Path, lacking: tuple[str, ...]) -> None:
    from transformers import AutoModelForCausalLM

    without = tokenizer([*lacking, PAD])
    without.save_pretrained(tmp_path)
    model: Any = AutoModelForCausalLM.from_pretrained(TINY_LLAMA)
    model.resize_token_embeddings(len(without))
    model.save_pretrained(tmp_path)
    local = TransformersReflection(tmp_path, tokens_required=False)
    limits = SegmentLimits(8, whole_answer=True)
    with completing(tmp_path) as server:
        with pytest.raises(ModelError, match=r"no single id for .*No support"):
            client(server.url).candidates(KETTLE, limits)
        remote = client(server.url, tokens_required=False, top=ALL)
        same(remote.candidates(KETTLE, limits), local.candidates(KETTLE, limits))
    assert f"lacks {len(lacking)} of 15 reflection tokens" in remote.approximation


def completion(**changed: Any) -> dict[str, Any]:
    """Return a reply with one token, `[Relevant]` of the tiny model."""
    number = tokenizer().convert_tokens_to_ids(RELEVANT)
    listed = {f"token_id:{place}": -float(place) for place in range(1, 6)}
    told = {
        "tokens": [f"token_id:{number}"], "token_logprobs": [-0.1], "top_logprobs": [listed],
    }  # fmt: skip
    choice = {"index": 0, "text": RELEVANT, "finish_reason": "stop", "logprobs": told} | changed
    about = {"id": "c", "object": "text_completion", "created": 0, "model": "m", "usage": {}}
    return about | {"choices": [choice]}


BY_NAME = {
    "tokens": [RELEVANT],
    "token_logprobs": [-0.1],
    "top_logprobs": [dict.fromkeys("abcde", -1.0)],
}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (completion(logprobs=None), "no log-probabilities"),
        (completion(logprobs={"tokens": [RELEVANT]}), "KeyError"),
        (completion(text=None), "AttributeError"),
        (completion(logprobs=BY_NAME), "ValueError"),
        (completion() | {"choices": None}, "TypeError"),
        (b"<html>busy</html>", "cannot be used"),
        ({"error": {"message": "the engine is dead"}}, "cannot be used"),
    ],
)
def test_malformed_replies(server: CompletionsServer, reply: Any, said: str) -> None:
    server.reply = reply
    with pytest.raises(ModelError, match=said) as raised:
        client(server.url).candidates(KETTLE, SHORT)
    assert raised.value.problem == "failed"


@pytest.mark.parametrize("status", [400, 401, 404, 503])
def test_failures_are_said_without_the_key(server: CompletionsServer, status: int) -> None:
    with serving({}) as refusing:
        refusing.statuses = [404, status]
        refusing.failure = {"error": {"message": f"no access with {KEY}"}}
        remote = client(f"{refusing.url}/v1", api_key=KEY)
        with pytest.raises(ModelError, match=f"answered {status}: no access with") as asking:
            remote.decide([question("kettle")])
        assert refusing.requests[-1]["authorization"] == f"Bearer {KEY}"
    server.reply = status
    with pytest.raises(ModelError, match="--max-logprobs 20") as completing_:
        client(server.url, api_key=KEY).decide([question("kettle")])
    for raised in (asking, completing_):
        assert KEY not in f"{raised.value!r}{remote!r}{raised.value.__cause__!r}"
