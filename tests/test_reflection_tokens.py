"""Tokens have their exact strings, and each is a single id or the tokenizer is refused."""

from typing import Any

import pytest

from crag.errors import ModelError
from crag.reflection_tokens import GROUPS, TOKENS, token_ids, without_tokens

UNKNOWN = "<unk>"


def tokenizer_with(tokens: list[str]) -> Any:
    """Return a tokenizer of transformers that knows a few words and these tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {UNKNOWN: 0, "Retrieval": 1, "[": 2, "]": 3, "Paris": 4}
    inner = Tokenizer(models.WordLevel(words, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token=UNKNOWN)
    tokenizer.add_tokens(tokens, special_tokens=True)
    return tokenizer


class Pieces:
    """A tokenizer that knows some tokens by id and cuts everything else into two pieces."""

    def __init__(
        self, known: dict[str, int], *, name: str = "", unknown: int | None = None
    ) -> None:
        self._known, self.name_or_path, self.unk_token_id = known, name, unknown

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [self._known[text]] if text in self._known else [7, 8]


def test_strings_and_order_are_those_of_the_released_vocabulary() -> None:
    assert TOKENS == (
        "[No Retrieval]", "[Retrieval]", "[Continue to Use Evidence]",
        "[Irrelevant]", "[Relevant]", "<paragraph>", "</paragraph>",
        "[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]",
        "[Fully supported]", "[Partially supported]", "[No support / Contradictory]",
    )  # fmt: skip
    assert {group: len(tokens) for group, tokens in GROUPS.items()} == {
        "retrieve": 3, "relevance": 2, "support": 3, "utility": 5,
    }  # fmt: skip
    assert all(token in TOKENS for tokens in GROUPS.values() for token in tokens)


def test_ids_of_a_real_tokenizer_are_looked_up() -> None:
    tokenizer = tokenizer_with(list(TOKENS))
    ids = token_ids(tokenizer)
    assert list(ids) == list(TOKENS)
    assert list(ids.values()) == list(range(5, 20))
    shuffled = token_ids(tokenizer_with(sorted(TOKENS)))
    assert shuffled != ids
    assert sorted(shuffled) == sorted(TOKENS)


def test_a_real_tokenizer_without_the_tokens_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no single id for \[No Retrieval\], \[Retrieval\]"):
        token_ids(tokenizer_with([]))


def test_the_message_names_exactly_the_tokens_that_are_missing() -> None:
    known = {token: place for place, token in enumerate(TOKENS)}
    del known["[Utility:4]"], known["</paragraph>"]
    with pytest.raises(ModelError) as raised:
        token_ids(Pieces(known, name="some/model"))
    assert raised.value.problem == "unknown"
    assert raised.value.name == "some/model"
    assert "no single id for </paragraph>, [Utility:4];" in str(raised.value)


def test_one_id_for_everything_unknown_is_no_id() -> None:
    known = {token: place for place, token in enumerate(TOKENS)} | {"[Relevant]": 99}
    with pytest.raises(ModelError, match=r"no single id for \[Relevant\];"):
        token_ids(Pieces(known, unknown=99))
    with pytest.raises(ModelError, match=r"\[Retrieval\], \[Relevant\];"):
        token_ids(Pieces(known | {"[Retrieval]": 99}))


def test_tokens_are_deleted_and_nothing_else() -> None:
    text = "[Retrieval]<paragraph>A</paragraph>[Relevant] b [c][Utility:5]</s><pad>[Utility:6]"
    assert without_tokens(text) == "A b [c][Utility:6]"
    assert without_tokens("[Rele[Relevant]vant]") == "[Relevant]"
