"""A language model with random weights, small enough to train within seconds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDING = (
    "### Instruction:\nDecide whether the evidence helps to carry out the instruction. ",
    "Task instruction: Evidence: Output: Preceding sentences: ### Input:\n### Response:\n",
    " Relevant Irrelevant Fully supported Partially No support Contradictory Utility Retrieval ",
    " Continue to Use Evidence paragraph ( ) , . ? ! ' - :",
)
"""Words of prompts and tokens that a tiny vocabulary needs."""


def tiny_language_model(folder: Path, texts: Sequence[str]) -> Path:
    """Save a Llama of two layers with random weights, without reflection tokens.

    Its tokenizer cuts words, digits and other single characters; it knows the words of `texts` and
    of `WORDING`, ends with ``</s>`` and has nothing to pad with.
    """
    import torch
    from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    cutter = pre_tokenizers.Split(Regex(r" ?[A-Za-z]+|\d|[^A-Za-z\d]"), "isolated")
    known = [*texts, *WORDING]
    words = {word for text in known for word, _ in cutter.pre_tokenize_str(text)}
    vocabulary = ["<unk>", "<s>", "</s>", *sorted(words - {"<unk>", "<s>", "</s>"})]
    inner = Tokenizer(WordLevel({w: n for n, w in enumerate(vocabulary)}, unk_token="<unk>"))  # noqa: S106
    inner.pre_tokenizer = cutter
    inner.decoder = decoders.Fuse()
    inner.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    named: Any = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    outer = PreTrainedTokenizerFast(tokenizer_object=inner, **named)  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(outer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                num_attention_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
                tie_word_embeddings=True, initializer_range=0.2,
            )
        )  # fmt: skip
    model.save_pretrained(folder)
    outer.save_pretrained(folder)
    return folder
