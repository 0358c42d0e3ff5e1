"""What the tests of training Self-RAG share: made-up articles, and their files."""

import json
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.trained import PLACES, TOPICS


def articles(count: int) -> list[dict[str, Any]]:
    """Return paragraphs, two of an article, each with a question that only it answers."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        topic, place = TOPICS[number // 2 % len(TOPICS)], PLACES[number // 2 % len(PLACES)]
        title = f"{topic.title()} of {place}"
        year = str(1700 + 7 * number)
        if number % 2 == 0:
            answer = year
            text = (
                f"The {topic} of {place} was built in {year} by the river. "
                "It stands near the old museum of the town. Nobody owns it today."
            )
            question = f"When was the {topic} of {place} built?"
        else:
            answer = f"a carpenter of the royal court and his {number} sons"
            text = (
                f"Rain fell on the {topic} for forty nights. It was repaired by {answer}. "
                f"Visitors of {place} see it in summer."
            )
            question = f"Who repaired the {topic} of {place}?"
        found = {"text": answer, "start": text.index(answer)}
        asked = {"question": question, "answers": [found]}
        rows.append({"title": title, "text": text, "questions": [asked]})
    return rows


def written(path: Path, rows: Sequence[object]) -> Path:
    """Write rows as JSONL and return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse to make any file larger than `size` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def tiny_base(folder: Path, *, tied: bool = True, seed: int = 0) -> Path:
    """Save a causal language model of two layers with random weights, without reflection tokens.

    Its tokenizer cuts words and single characters, ends with ``</s>`` and has nothing to pad with.
    """
    import torch
    from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    cutter = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+|\d|[^A-Za-z\d]"), "isolated")
    texts = [*(row["text"] + row["questions"][0]["question"] for row in articles(80)), *WORDING]
    words = {word for text in texts for word, _ in cutter.pre_tokenize_str(text)}
    vocabulary = ["<unk>", "<s>", "</s>", *sorted(words - {"<unk>", "<s>", "</s>"})]
    inner = Tokenizer(WordLevel({w: n for n, w in enumerate(vocabulary)}, unk_token="<unk>"))  # noqa: S106
    inner.pre_tokenizer = cutter
    inner.decoder = decoders.Fuse()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    named: Any = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    outer = PreTrainedTokenizerFast(tokenizer_object=inner, **named)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(outer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                num_attention_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
                tie_word_embeddings=tied, initializer_range=0.2,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    outer.save_pretrained(folder)
    return folder


WORDING = (
    "### Instruction:\nDecide whether the evidence helps to carry out the instruction. ",
    "Task instruction: Evidence: Output: Preceding sentences: ### Input:\n### Response:\n",
    " Relevant Irrelevant Fully supported Partially No support Contradictory Utility Retrieval ",
    " Continue to Use Evidence paragraph ( ) , . ? ! ' - :",
)
"""Words of prompts and tokens that a tiny vocabulary needs."""
