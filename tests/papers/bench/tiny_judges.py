"""Tiny models in the place of those that judge citations and compute MAUVE."""

from pathlib import Path
from typing import Any

from tests.papers.metrics.test_entailment import classifier
from tests.trained import tiny_bert


def features_model(folder: Path) -> str:
    """Write a model that MAUVE takes; the folder's name must hold bert."""
    return _widened(str(tiny_bert(folder)))


def entailing_model(folder: Path) -> str:
    """Write a classifier by which everything entails everything."""
    return _widened(classifier(folder, ["entailment", "neutral"], 0))


def _widened(folder: str) -> str:
    """Give a tiny model room for every token of its tokenizer."""
    import transformers

    config: Any = transformers.AutoConfig.from_pretrained(folder)
    model: Any = getattr(transformers, config.architectures[0]).from_pretrained(folder)
    model.resize_token_embeddings(config.vocab_size + 1)
    model.save_pretrained(folder)
    return folder
