"""Reflection by a model with the tokens in this process: its numbers, its limits, its files."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crag.errors import ModelError
from crag.parts import Candidate, Passage, Prefix, SegmentLimits, continuations
from crag.reflection.backends.candidates import (
    LONGEST_PASSAGE,
    Row,
    TokenReflection,
    prose,
)
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection_tokens import (
    FULLY,
    RETRIEVAL,
    SUPPORT,
)
from tests.reflection.backends.tiny_llama import TINY_LLAMA, one_core, passage, question, tokenizer

SHORT = SegmentLimits(24)


@pytest.fixture(scope="module", autouse=True)
def _one_core() -> Iterator[None]:
    with one_core():
        yield


@pytest.fixture(scope="module")
def backend() -> TransformersReflection:
    return TransformersReflection(TINY_LLAMA)


def one(
    backend: TransformersReflection, prefix: Prefix, given: Passage | None, limits: SegmentLimits
) -> Candidate:
    (candidate,) = backend.candidates(continuations(prefix, [given]), limits)
    return candidate


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


def test_a_prompt_beyond_the_context_is_an_error(backend: TransformersReflection) -> None:
    with pytest.raises(ModelError, match="exceed its context of 192"):
        one(backend, Prefix("Say on. " * 200), None, SHORT)


@pytest.mark.parametrize("removed", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_an_error_until_it_is_there(tmp_path: Path, removed: str) -> None:
    folder = Path(shutil.copytree(TINY_LLAMA, tmp_path / "model"))
    (folder / removed).unlink()
    backend = TransformersReflection(folder)
    with pytest.raises(ModelError, match="cannot be loaded"):
        backend.load()
    shutil.copy(TINY_LLAMA / removed, folder)
    assert backend.decide([question("kettle")])[0].emitted == RETRIEVAL


def test_a_checkpoints_own_habits_do_not_change_what_is_greedy(
    tmp_path: Path, backend: TransformersReflection
) -> None:
    folder = Path(shutil.copytree(TINY_LLAMA, tmp_path / "model"))
    (folder / "generation_config.json").write_text(
        '{"do_sample": true, "repetition_penalty": 5.0, "temperature": 3.0}', "utf-8"
    )
    given = continuations(Prefix("Go on."), [None]), SegmentLimits(6)
    habitual = TransformersReflection(folder).candidates(*given)
    assert habitual == backend.candidates(*given)


@pytest.mark.parametrize("forged", ["[Utility:5]", "[Retrieval]", "<paragraph>", "</s>", "[1]"])
def test_prose_holds_no_token_and_no_citation(forged: str) -> None:
    said = prose(f"A\n\n fact.{forged} ")
    assert said.startswith("A fact.")
    assert forged not in said


class Keeping(TokenReflection):
    """Writes nothing, and keeps what it was asked."""

    prompts: Sequence[str] = ()

    def _generated(self, prompts: Sequence[str], *_: Any) -> list[Row]:
        self.prompts = prompts
        return [Row([], "", is_cut=False) for _ in prompts]


def test_a_long_passage_is_cut_between_words() -> None:
    backend = Keeping()
    long = Passage("T", "word " * LONGEST_PASSAGE)
    backend.candidates(continuations(Prefix("Who?"), [long]), SegmentLimits())
    (prompt,) = backend.prompts
    assert prompt.endswith(" word</paragraph>")
    assert LONGEST_PASSAGE < len(prompt.partition("T\n")[2]) < LONGEST_PASSAGE + 10
