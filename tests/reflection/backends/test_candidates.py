"""Segments written as by a model with the tokens."""

from collections.abc import Sequence
from typing import Any

import pytest

from crag.parts import Passage, Prefix, SegmentLimits, continuations
from crag.reflection.backends.candidates import (
    LONGEST_PASSAGE,
    Row,
    TokenReflection,
    prose,
)


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
