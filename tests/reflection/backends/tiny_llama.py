"""A Llama of two layers that has learnt to reflect on colours of things.

It lies in `tests/fixtures/tiny_llama`, which tests only read; see the README beside it.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crag.parts import Continuation, Passage, Prefix

COLOURS = {"kettle": "red", "violin": "brown", "compass": "black", "lantern": "green"}
TINY_LLAMA = Path(__file__).parents[2] / "fixtures" / "tiny_llama"


def question(thing: str) -> Prefix:
    return Prefix(f"What colour is the {thing}?")


def passage(thing: str) -> Passage:
    return Passage(thing.title(), f"The {thing} is {COLOURS[thing]}.")


def mixed() -> list[Continuation]:
    """Return continuations of several prefixes and lengths, as hypotheses of a beam have them."""
    later = Prefix(
        question("lantern").instruction,
        "[Retrieval][Relevant] The lantern is green.[Fully supported]",
        passage("lantern"),
    )
    long = Passage("Compass", "The compass is black. " * 9)
    return [
        Continuation(question("kettle"), passage("kettle")),
        Continuation(later, passage("lantern")),
        Continuation(later, passage("violin")),
        Continuation(Prefix("Say nothing."), None),
        Continuation(question("compass"), long),
        Continuation(Prefix("Go on."), None),
        Continuation(question("compass"), passage("violin")),
    ]


@contextmanager
def one_core() -> Iterator[None]:
    """Let torch use one core: on so small a model several would only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def tokenizer(without: Collection[str] = ()) -> Any:
    """Return its tokenizer of words, without the last of its special tokens."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    described = json.loads((TINY_LLAMA / "tokenizer.json").read_text("utf-8"))
    described["added_tokens"] = [
        token for token in described["added_tokens"] if token["content"] not in without
    ]
    named = json.loads((TINY_LLAMA / "tokenizer_config.json").read_text("utf-8"))
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(described)),
        **{kind: named[kind] for kind in ("bos_token", "eos_token", "unk_token")},
    )
