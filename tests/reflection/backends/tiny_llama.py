"""A Llama of two layers that has learnt to reflect on colours of things.

It lies in `tests/fixtures/tiny_llama`, as training takes 16 seconds of processor time. After a
change of the prompts, of the tokens or of this file, train it again:
``python -m tests.reflection.backends.tiny_llama``.
"""

import atexit
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crag.parts import Continuation, Passage, Prefix
from crag.reflection.prompt_format import base_prompt
from crag.reflection_tokens import CONTINUE, PAD, RETRIEVAL, SUPPORT, TOKENS, UTILITY

ADDED = (*TOKENS, PAD)
"""In the order in which Self-RAG adds them to the vocabulary."""
COLOURS = {"kettle": "red", "violin": "brown", "compass": "black", "lantern": "green"}
CONTEXT_TOKENS = 192
TINY_LLAMA = Path(__file__).parents[2] / "fixtures" / "tiny_llama"
"""The folder of the model, which tests only read."""
_GOES_ON = {"compass": CONTINUE, "lantern": RETRIEVAL}
"""Answers on these have a second sentence, after this token."""
_WORDS = r" ?[A-Za-z]+|\s|[^A-Za-z\s]"
_SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": CONTEXT_TOKENS,
}
_STEPS, _PARTS, _RATE = 320, 4, 6e-3
"""One step takes every fourth example."""


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


def train() -> None:
    """Train the model and save it."""
    _trained(tokenizer()).save_pretrained(TINY_LLAMA)
    tokenizer().save_pretrained(TINY_LLAMA)


@cache
def byte_pair_llama() -> Path:
    """Return the same model with a vocabulary of byte pairs, as llama.cpp knows them.

    Each word keeps its id; what is needed to put words together has new ids with empty rows.
    """
    import torch
    from transformers import AutoModelForCausalLM

    place = TemporaryDirectory()
    atexit.register(place.cleanup)
    model: Any = AutoModelForCausalLM.from_pretrained(TINY_LLAMA)
    pairs, before = _byte_pairs(), model.config.vocab_size
    model.resize_token_embeddings(len(pairs), mean_resizing=False)
    with torch.no_grad():
        for table in (model.get_input_embeddings(), model.get_output_embeddings()):
            table.weight[before:] = 0
    model.save_pretrained(place.name)
    pairs.save_pretrained(place.name)
    return Path(place.name)


def _byte_pairs() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    words = tokenizer()
    letters = [word for word in words.get_vocab() if word.strip().isalpha()]
    cutter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learning = Tokenizer(models.BPE())
    learning.pre_tokenizer = cutter
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learning.train_from_iterator(
        letters,
        trainers.BpeTrainer(vocab_size=9999, show_progress=False, initial_alphabet=alphabet),
    )
    merged = json.loads(learning.to_str())["model"]
    special = {"<unk>", "<s>", "</s>", *ADDED}
    ids = {
        word if word in special else cutter.pre_tokenize_str(word)[0][0]: number
        for word, number in words.get_vocab().items()
    }
    for piece in merged["vocab"]:
        ids.setdefault(piece, len(ids))
    merges = [tuple(pair) for pair in merged["merges"]]
    return _wrapped(models.BPE(ids, merges), cutter, decoders.ByteLevel(), ADDED)


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


def tokenizer(added: tuple[str, ...] = ADDED) -> Any:
    """Return a tokenizer of words, with `added` as special tokens after them."""
    from tokenizers import Regex, decoders, pre_tokenizers
    from tokenizers.models import WordLevel

    cutter = pre_tokenizers.Split(Regex(_WORDS), "isolated")
    texts = (text for example in _examples() for text, _ in example if text not in ADDED)
    words = {word for text in texts for word, _ in cutter.pre_tokenize_str(text)}
    vocabulary = ["<unk>", "<s>", "</s>", *sorted(words - {"</s>", *ADDED})]
    ids = {word: number for number, word in enumerate(vocabulary)}
    return _wrapped(WordLevel(ids, **_named("unk")), cutter, decoders.Fuse(), added)


def _wrapped(model: Any, cutter: Any, decoder: Any, added: tuple[str, ...]) -> Any:
    from tokenizers import Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(model)
    inner.pre_tokenizer, inner.decoder = cutter, decoder
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    outer = PreTrainedTokenizerFast(tokenizer_object=inner, **_named("bos", "eos", "unk"))
    outer.add_tokens(list(added), special_tokens=True)
    return outer


def _named(*kinds: str) -> dict[str, Any]:
    tokens = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
    return {f"{kind}_token": tokens[kind] for kind in kinds}


def untrained(vocabulary: int, seed: int = 0) -> Any:
    """Return a small Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(vocab_size=vocabulary, bos_token_id=1, eos_token_id=2, **_SIZES)
        )


def _trained(outer: Any) -> Any:
    """Fit the model to the examples; the loss counts what the model itself writes."""
    import torch

    model = untrained(len(outer))
    rows = [_row(outer, example) for example in _examples()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=_STEPS)
    with one_core():
        for step in range(_STEPS):
            model(**_batch(rows[step % _PARTS :: _PARTS])).loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return model.eval()


def _batch(rows: list[tuple[list[int], list[int]]]) -> dict[str, Any]:
    import torch

    width = max(len(ids) for ids, _ in rows)
    return {
        "input_ids": torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in rows]),
        "labels": torch.tensor([labels + [-100] * (width - len(ids)) for ids, labels in rows]),
        "attention_mask": torch.tensor(
            [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]
        ),
    }


def _row(outer: Any, example: list[tuple[str, bool]]) -> tuple[list[int], list[int]]:
    ids, labels = [outer.bos_token_id], [-100]
    for text, learnt in example:
        piece = outer(text, add_special_tokens=False).input_ids
        ids += piece
        labels += piece if learnt else [-100] * len(piece)
    return ids, labels


def _examples() -> Iterator[list[tuple[str, bool]]]:
    """Yield texts in pieces, each with whether the model learns to write it.

    Of each kind there are several with other tokens, so that no probability nears 1.
    """
    for thing, other in product(COLOURS, COLOURS):
        for variant in range(3):
            yield _about(thing, other, variant)
    for variant in range(3):  # Whole answers go on over a Retrieve token, without a passage.
        yield _about("lantern", "lantern", variant, reads_again=False)
    for thing in COLOURS:
        yield _asked(question(thing), [("[No Retrieval]", True), (" It may be red.", True), _END])
    for variant in range(2):
        greeting = [("[No Retrieval] Hello.", True), (UTILITY[4 - variant], True), _END]
        yield _asked(Prefix("Say hello."), greeting)
        yield _asked(Prefix("Say nothing."), [("[No Retrieval]", True), _END])
        yield _asked(Prefix("Go on."), [("[No Retrieval]" + " on" * 30, True)])


_END = ("</s>", True)


def _asked(prefix: Prefix, output: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return [(base_prompt(prefix.instruction), False), *output]


def _about(
    thing: str, other: str, variant: int, *, reads_again: bool = True
) -> list[tuple[str, bool]]:
    read = passage(other)
    shown = [("[Retrieval]", True), (f"<paragraph>{read.title}\n{read.text}</paragraph>", False)]
    if thing != other:
        said = [("[Irrelevant] I cannot say.", True), (UTILITY[variant // 2], True), _END]
        return _asked(question(thing), shown + said)
    said = [
        (f"[Relevant] The {thing} is {COLOURS[thing]}.", True),
        (SUPPORT[variant // 2], True),
    ]
    following = _GOES_ON.get(thing)
    if following:
        said += [(following, True)]
        again = following == RETRIEVAL and reads_again
        said += [*shown[1:], ("[Relevant]", True)] if again else []
        said += [(" It is old.", True), (SUPPORT[variant // 2], True)]
    return _asked(question(thing), shown + said + [(UTILITY[4 - variant // 2], True), _END])


if __name__ == "__main__":
    train()
