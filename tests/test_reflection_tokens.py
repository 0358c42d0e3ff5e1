"""Tokens have their exact strings, and each is a single id or the tokenizer is refused."""

import pytest

from crag.errors import ModelError
from crag.reflection_tokens import GROUPS, TOKENS, token_ids, without_tokens

KNOWN = {token: place for place, token in enumerate(TOKENS)}


class Pieces:
    """A tokenizer that knows some tokens by id and cuts everything else into two pieces."""

    name_or_path = "some/model"

    def __init__(self, known: dict[str, int], *, unknown: int | None = None) -> None:
        self._known, self.unk_token_id = known, unknown

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


@pytest.mark.parametrize(
    ("lost", "shared", "missing"),
    [
        ((), {}, ""),
        (("[Utility:4]", "</paragraph>"), {}, "</paragraph>, [Utility:4]"),
        ((), {"[Relevant]": 99}, "[Relevant]"),
        ((), {"[Relevant]": 99, "[Retrieval]": 99}, "[Retrieval], [Relevant]"),
        (TOKENS, {}, ", ".join(TOKENS)),
    ],
)
def test_each_token_is_a_single_id_of_its_own_or_the_message_names_it(
    lost: tuple[str, ...], shared: dict[str, int], missing: str
) -> None:
    known = {token: place for token, place in KNOWN.items() if token not in lost} | shared
    tokenizer = Pieces(known, unknown=99)
    assert token_ids(tokenizer, required=False) == {
        token: place for token, place in known.items() if place != 99
    }
    if missing:
        with pytest.raises(ModelError) as raised:
            token_ids(tokenizer)
        assert (raised.value.name, raised.value.problem) == ("some/model", "unknown")
        assert f"no single id for {missing};" in str(raised.value)


def test_tokens_are_deleted_and_nothing_else() -> None:
    text = "[Retrieval]<paragraph>A</paragraph>[Relevant] b [c][Utility:5]</s><pad>[Utility:6]"
    assert without_tokens(text) == "A b [c][Utility:6]"
    assert without_tokens("[Rele[Relevant]vant]") == "[Relevant]"
