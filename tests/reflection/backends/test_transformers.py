import logging
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crag.errors import ModelError, SettingsError
from crag.parts import Candidate, Passage, Prefix, SegmentLimits, continuations
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import (
    FULLY,
    IRRELEVANT,
    RELEVANT,
    RETRIEVAL,
    SUPPORT,
    TOKENS,
    UTILITY,
)
from tests.reflection.backends.tiny_llama import (
    TINY_LLAMA,
    one_core,
    passage,
    question,
    tokenizer,
    untrained,
)

SHORT = SegmentLimits(24)
WHOLE = SegmentLimits(24, whole_answer=True)


@pytest.fixture(scope="module", autouse=True)
def _one_core() -> Iterator[None]:
    with one_core():
        yield


@pytest.fixture(scope="module")
def backend() -> TransformersReflection:
    return TransformersReflection(TINY_LLAMA, device="cpu")


def pieces() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(TINY_LLAMA), tokenizer()


def one(
    backend: TransformersReflection, prefix: Prefix, given: Passage | None, limits: SegmentLimits
) -> Candidate:
    (candidate,) = backend.candidates(continuations(prefix, [given]), limits)
    return candidate


def close(found: Sequence[Candidate], expected: Sequence[Candidate]) -> None:
    assert len(found) == len(expected) > 0
    for left, right in zip(found, expected, strict=True):
        assert (left.text, left.tokens, left.ending) == (right.text, right.tokens, right.ending)
        assert left.mean_log_probability == pytest.approx(right.mean_log_probability, abs=1e-4)
        for group in ("relevance", "support", "utility"):
            assert getattr(left, group) == pytest.approx(getattr(right, group), abs=1e-4)


def test_reads_a_full_answer(backend: TransformersReflection) -> None:
    candidate = one(backend, question("kettle"), passage("kettle"), SHORT)
    assert candidate.text == f"{RELEVANT} The kettle is red.{FULLY}[Utility:5]"
    assert candidate.ending == "end"
    assert candidate.tokens == 8
    assert candidate.relevance is not None
    assert candidate.relevance[RELEVANT] > 0.9
    assert 0 < candidate.relevance[IRRELEVANT] < 0.1
    assert candidate.support is not None
    assert set(candidate.support) == set(SUPPORT)
    assert candidate.support[FULLY] == max(candidate.support.values()) < 0.95
    assert candidate.utility is not None
    assert set(candidate.utility) == set(UTILITY)
    assert -1 < candidate.mean_log_probability < 0


def test_a_plain_forward_pass_gives_the_same_numbers(backend: TransformersReflection) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from crag.reflection.prompt_format import candidate_prompt

    candidate = one(backend, question("kettle"), passage("kettle"), SHORT)
    words = tokenizer()
    before = words(candidate_prompt(question("kettle"), passage("kettle"))).input_ids
    after = words(candidate.text, add_special_tokens=False).input_ids
    model = AutoModelForCausalLM.from_pretrained(TINY_LLAMA)
    with torch.inference_mode():
        logs = model(torch.tensor([before + after])).logits[0].log_softmax(-1)
    at = len(before) - 1
    own = [float(logs[at + i, token]) for i, token in enumerate(after)]
    assert candidate.mean_log_probability == pytest.approx(sum(own) / len(own), abs=1e-4)
    sup = at + after.index(words.convert_tokens_to_ids(FULLY))
    expected = {t: float(logs[sup].exp()[words.convert_tokens_to_ids(t)]) for t in SUPPORT}
    assert candidate.support == pytest.approx(expected, abs=1e-4)


def test_an_empty_generation(backend: TransformersReflection) -> None:
    candidate = one(backend, Prefix("Say nothing."), None, SHORT)
    assert candidate._replace(end_log_probability=None) == Candidate(
        "", None, None, None, 0.0, 0, "end"
    )
    assert candidate.end_log_probability is not None


def test_a_passage_beyond_the_context_is_cut(
    backend: TransformersReflection, caplog: pytest.LogCaptureFixture
) -> None:
    long = Passage("Kettle", "The kettle is red. " * 200)
    with caplog.at_level(logging.WARNING, "crag"):
        candidate = one(backend, question("kettle"), long, SHORT)
    assert "of 3800 characters are used" in caplog.text
    assert candidate.relevance is not None
    assert candidate.tokens > 0


def test_a_question_beyond_the_context_is_refused(backend: TransformersReflection) -> None:
    with pytest.raises(ModelError, match="Shorten the question"):
        backend.candidates(continuations(Prefix("kettle " * 300), [passage("kettle")]), SHORT)
    with pytest.raises(ModelError, match="Shorten the question"):
        backend.decide([Prefix("kettle " * 300)])


def test_a_tokenizer_without_the_tokens(tmp_path: Path) -> None:
    without = tokenizer(TOKENS[:-2])
    without.save_pretrained(tmp_path)
    untrained(len(without)).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"no single id for .*Partially.*No support") as raised:
        TransformersReflection(tmp_path).load()
    assert "selfrag" in str(raised.value)


@pytest.mark.parametrize("added", [(), TOKENS[:-2]], ids=["none", "some"])
def test_a_model_without_the_tokens_runs_where_they_are_not_required(
    tmp_path: Path, added: tuple[str, ...]
) -> None:
    without = tokenizer(added)
    without.save_pretrained(tmp_path)
    untrained(len(without)).save_pretrained(tmp_path)
    lenient = TransformersReflection(tmp_path, tokens_required=False)
    found = lenient.candidates(continuations(question("kettle"), [passage("kettle")]), SHORT)
    assert lenient.approximation == (
        f"the model lacks {len(TOKENS) - len(added)} of {len(TOKENS)} reflection tokens: "
        "critiques are neutral"
    )
    (decision,) = lenient.decide([question("kettle")])
    if not added:
        assert (found[0].relevance, found[0].support, found[0].utility) == ({}, None, None)
        assert decision.retrieve == {}
    assert found[0].mean_log_probability < 0


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        ("model.safetensors", "weights cannot be loaded"),
        ("tokenizer.json", "tokenizer cannot be loaded"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, removed: str, said: str) -> None:
    folder = Path(shutil.copytree(TINY_LLAMA, tmp_path / "model"))
    (folder / removed).unlink()
    backend = TransformersReflection(folder)
    with pytest.raises(ModelError, match=said):
        backend.load()
    shutil.copy(TINY_LLAMA / removed, folder)
    assert backend.decide([question("kettle")])[0].emitted == RETRIEVAL


def test_wrong_options() -> None:
    with pytest.raises(SettingsError, match="batch_size"):
        TransformersReflection(TINY_LLAMA, batch_size=0)
    with pytest.raises(ModelError, match="there are: cpu"):
        TransformersReflection(TINY_LLAMA, device="abacus").load()


def test_a_checkpoints_own_habits_do_not_change_what_is_greedy(
    tmp_path: Path, backend: TransformersReflection
) -> None:
    folder = Path(shutil.copytree(TINY_LLAMA, tmp_path / "model"))
    (folder / "generation_config.json").write_text(
        '{"do_sample": true, "repetition_penalty": 5.0, "temperature": 3.0}', "utf-8"
    )
    given = continuations(Prefix("Go on."), [None]), SegmentLimits(6)
    habitual = TransformersReflection(folder, device="cpu").candidates(*given)
    close(habitual, backend.candidates(*given))


def test_a_model_of_the_hub_that_cannot_be_had_is_named() -> None:
    with pytest.raises(ModelError, match=r"nobody/no-such-model.* cannot be loaded"):
        TransformersReflection("nobody/no-such-model").load()
