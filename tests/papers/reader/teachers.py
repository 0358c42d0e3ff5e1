"""Tiny models with the word pieces of the packaged encoder, as BERT and as MPNet have them."""

from pathlib import Path

from tests.trained import packaged_tokenizer


def tiny_bert_teacher(folder: Path) -> Path:
    """Save a BERT of two layers with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = packaged_tokenizer()
    BertModel(BertConfig(**_SMALL, vocab_size=len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_mpnet_teacher(folder: Path) -> Path:
    """Save an MPNet of two layers, whose tokens have other numbers and marks between texts."""
    import torch
    from transformers import MPNetConfig, MPNetModel, MPNetTokenizer

    torch.manual_seed(0)
    own = packaged_tokenizer().get_vocab()
    pieces = sorted(own, key=lambda piece: own[piece])
    every = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
    vocabulary = {piece: number for number, piece in enumerate(every)}
    MPNetModel(MPNetConfig(**_SMALL, vocab_size=len(vocabulary))).save_pretrained(folder)
    MPNetTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(folder)
    return folder


_SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 130, "initializer_range": 0.3,
}  # fmt: skip
