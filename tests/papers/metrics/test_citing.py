"""Metrics of long answers: citations, short answers within them, likeness to references."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.papers.metrics import METRICS
from crag.papers.metrics.citing import citation_metrics, cited, load_entailment, passage_text
from crag.papers.metrics.long_form import (
    mauve,
    mauve_text,
    rouge_lsum,
    sentences,
    str_em,
    without_citations,
)
from tests.trained import TINY_T5, tiny_bert

Make = Callable[..., Any]
PASSAGES = {1: "red", 2: "blue", 3: "green", 4: "grey"}


def holds_words(premise: str, hypothesis: str) -> bool:
    """Entail what is said word for word, in any order."""
    words = hypothesis.lower().strip(".").split()
    return all(word in premise.lower().split() for word in words)


@pytest.mark.parametrize(
    ("answer", "recall", "precision"),
    [
        ("red [1].", 1.0, 1.0),
        ("red [2].", 0.0, 0.0),
        ("red.", 0.0, 0.0),
        ("red [5].", 0.0, 0.0),
        ("red [0].", 0.0, 0.0),
        # Both are needed.
        ("red blue [1][2].", 1.0, 1.0),
        ("red blue [1, 2].", 1.0, 1.0),
        # The second is not needed: one of two citations is right.
        ("red [1][2].", 1.0, 0.5),
        # Neither alone nor needed: red and blue entail without green.
        ("red blue [1][2][3].", 1.0, 2 / 3),
        # Only three count: the fourth would have been needed.
        ("red grey [1][2][3][4].", 0.0, 0.0),
        # One sentence supported by one citation, one not by another: 1/2 and 1/2.
        ("red [1]. Green [2].", 0.5, 0.5),
        # Citations of a sentence that cites nothing real do not count.
        ("red [1]. Blue [9].", 0.5, 1.0),
        ("red [1]. No citation here.", 0.5, 1.0),
        ("red [1].\nblue [2].", 1.0, 1.0),
    ],
)
def test_by_hand(answer: str, recall: float, precision: float) -> None:
    found = cited(answer, PASSAGES, holds_words)
    assert found is not None
    assert found == pytest.approx((recall, precision))


def test_the_model_reads_title_text_and_a_sentence_without_citations() -> None:
    asked: list[tuple[str, str]] = []

    def entails(premise: str, hypothesis: str) -> bool:
        asked.append((premise, hypothesis))
        return True

    cited("It is so [2][1].", {1: passage_text("A", "one"), 2: passage_text("B", "two")}, entails)
    assert asked[0] == ("Title: B\ntwo\nTitle: A\none", "It is so.")


def test_metrics_of_rows_that_say_what_they_cite(example: Make, row: Make) -> None:
    calls: list[str] = []

    def entails(premise: str, hypothesis: str) -> bool:
        calls.append(f"{premise} {hypothesis}")
        return "one" in premise

    recall, precision = citation_metrics(entails)
    citations = [
        {"number": 3, "source": {"title": "A"}, "text": "one"},
        {"number": 7, "source": {"title": "B"}, "text": "two"},
    ]
    answered = row("It is so [3]. So it is [7].", citations=citations)
    assert (recall.score(example(), answered), precision.score(example(), answered)) == (0.5, 0.5)
    assert len(calls) == 2
    assert (
        recall.score(example(), row("It is so [3].", citations=citations, outcome="failed")) is None
    )


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


def writer(folder: Path, *, says_one: bool) -> str:
    """Save a tiny T5 that writes `1`, or nothing."""
    import torch
    from transformers import AutoTokenizer, T5Config, T5ForConditionalGeneration

    tokenizer: Any = AutoTokenizer.from_pretrained(TINY_T5)
    tokenizer.add_tokens(["1"])
    config = T5Config.from_pretrained(TINY_T5, tie_word_embeddings=False)
    config.vocab_size, config.architectures = len(tokenizer), None
    model: Any = T5ForConditionalGeneration(config)
    with torch.no_grad():
        model.lm_head.weight.zero_()  # The likeliest token is the first, which only pads.
    if says_one:
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids("1")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("says_one", [True, False])
def test_a_writer_entails_when_it_writes_one(tmp_path: Path, says_one: bool) -> None:
    assert load_entailment(writer(tmp_path, says_one=says_one))(PREMISE, CLAIM) is says_one


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("France won [1]. Brazil too [2][3].", "France won. Brazil too."),
        ("France won[1].", "France won."),
        ("Both [1, 2] did.", "Both did."),
        ("a [note] stays, its bracket goes", "a [note stays, its bracket goes"),
        ("one | two", "one two"),
    ],
)
def test_citations_are_deleted(text: str, plain: str) -> None:
    assert without_citations(text) == plain


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("France won, then Brazil.", 1.0),
        ("The FRENCH TEAM won.", 0.5),
        ("It was Brazilian joy.", 0.5),
        ("Nobody.", 0.0),
        ("", 0.0),
    ],
)
def test_str_em_is_the_share_of_sub_questions(answer: str, share: float) -> None:
    assert str_em(answer, [["France", "French team"], ["Brazil"]]) == share


def test_str_em_of_a_row(example: Make, row: Make) -> None:
    item = example("asqa", answers=(("France",), ("Brazil",), ("Peru",), ("Chad",)))
    answer = "France [1], Brazil [2].\nPeru and Chad, but too late."
    assert METRICS["str_em"].score(item, row(answer)) == 0.5
    assert METRICS["str_em"].score(example(), row(answer)) is None
    assert METRICS["str_em"].score(item, row(answer, outcome="failed")) is None


def test_rouge_by_hand() -> None:
    """Cut in sentences, the union of the longest common subsequences is counted by words."""
    reference = "the cat sat on the mat."
    assert rouge_lsum(reference, [reference]) == 1.0
    # Six words against three, of which "the cat sat" are common: P 3/3, R 3/6.
    assert rouge_lsum("the cat sat", [reference]) == pytest.approx(2 * 1 * 0.5 / 1.5)
    # The stemmer joins "sits"/"sit"; the case does not matter.
    assert rouge_lsum("CATS SITTING", ["cat sits"]) == 1.0
    assert rouge_lsum("dogs", [reference]) == 0.0


def test_mauve_compares_question_and_answer_of_a_hundred_words() -> None:
    assert mauve_text("Who won?", " France won! ") == "Who won? France won"
    assert len(mauve_text("Who won?", "word " * 200).split()) == 100


def test_mauve_has_no_value_of_a_row_nor_without_references(example: Make, row: Make) -> None:
    metric = mauve("no model is loaded")
    item = example("asqa", reference="France.")
    assert metric.score(item, row("France")) is None
    assert metric.summarise([]) is None
    assert metric.summarise([(example("asqa"), row("France"))]) is None
    assert metric.summarise([(item, row("France", outcome="failed"))]) is None


def test_sentences_keep_their_citations_and_lose_surrounding_space() -> None:
    text = " It rained in St. Ives [1].  It was 3.5 mm. [2] Why? "
    assert sentences(text) == ["It rained in St. Ives [1].", "It was 3.5 mm. [2]", "Why?"]
    assert sentences(" ") == []
