from pathlib import Path
from typing import Any

import pytest

from crag.papers.metrics.citing import cited
from crag.papers.metrics.entailment import load_entailment
from tests.trained import TINY_T5, tiny_bert

PREMISE, CLAIM = "Title: Peru\nThe violin is old.", "The violin is old."


def classifier(folder: Path, labels: list[str], likeliest: int) -> str:
    """Save a tiny classifier that gives every pair the same label."""
    import torch
    from transformers import BertForSequenceClassification

    tiny_bert(folder, outputs=len(labels))
    model: Any = BertForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.eye(len(labels))[likeliest])
    model.config.id2label = dict(enumerate(labels))
    model.config.label2id = {label: number for number, label in enumerate(labels)}
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(("likeliest", "entailed"), [(0, True), (1, False), (2, False)])
def test_a_classifier_entails_when_that_label_is_likeliest(
    tmp_path: Path, likeliest: int, entailed: bool
) -> None:
    labels = ["ENTAILMENT", "neutral", "contradiction"]
    entails = load_entailment(classifier(tmp_path, labels, likeliest))
    assert entails(PREMISE, CLAIM) is entailed
    assert entails("word " * 1000, CLAIM) is entailed


def test_it_measures_citations(tmp_path: Path) -> None:
    entails = load_entailment(classifier(tmp_path, ["entailment", "not_entailment"], 0))
    found = cited("The violin is old [1]. It is red.", {1: PREMISE}, entails)
    assert found == (0.5, 1.0)


def writer(folder: Path, *, says_one: bool) -> str:
    """Save a tiny T5 that writes `1` and stops, or only stops, after the test's premise."""
    import torch
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    tokenizer: Any = AutoTokenizer.from_pretrained(TINY_T5)
    tokenizer.add_tokens(["1"])
    one = tokenizer.convert_tokens_to_ids("1")
    torch.manual_seed(0)
    config = T5Config.from_pretrained(TINY_T5, tie_word_embeddings=False)
    config.vocab_size, config.architectures = len(tokenizer), None
    model: Any = T5ForConditionalGeneration(config).eval()
    tokens = tokenizer(f"premise: {PREMISE} hypothesis: {CLAIM}", return_tensors="pt")
    asked = {"input_ids": tokens["input_ids"], "output_hidden_states": True}
    start = torch.tensor([[model.config.decoder_start_token_id, one]])
    with torch.no_grad():
        first, second = model(**asked, decoder_input_ids=start).decoder_hidden_states[-1][0]
        model.lm_head.weight.zero_()
        shared = first @ second
        model.lm_head.weight[one] = first - shared / (second @ second) * second
        model.lm_head.weight[tokenizer.eos_token_id] = (
            second - shared / (first @ first) * first if says_one else first
        )
        if not says_one:
            model.lm_head.weight[one] = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("says_one", [True, False])
def test_a_writer_entails_when_it_writes_one(tmp_path: Path, says_one: bool) -> None:
    assert load_entailment(writer(tmp_path, says_one=says_one))(PREMISE, CLAIM) is says_one
