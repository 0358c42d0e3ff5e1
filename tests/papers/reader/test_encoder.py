"""Training the sentence encoder in seconds: what it learns from, that it learns and goes on."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from crag.models.encoder import SentenceEncoder, packaged_encoder
from crag.models.model_card import ModelCard
from crag.papers.loading.records import write_records
from crag.papers.reader.bases import Base, load_base
from crag.papers.reader.encoder import (
    EncoderPair,
    EncoderRecipe,
    contrasted,
    contrastive_model,
    pairs_of,
    read_encoder_pairs,
    recall,
    save_encoder,
    split_off,
    train_encoder,
)
from crag.papers.reader.rows import ReadingRow
from crag.papers.saving import write_card
from tests.trained import TOPICS, packaged_tokenizer

RECIPE = EncoderRecipe(
    start="encoder",
    batch_size=8,
    learning_rate=3e-4,
    warmup_steps=2,
    max_length=32,
    steps=12,
    save_steps=6,
)
NAMES = ("Odin", "Thor", "Frey", "Loki", "Tyr", "Idun", "Bragi", "Heimdall", "Njord", "Balder",
         "Skadi", "Ran", "Ull", "Vidar", "Hel", "Sif")  # fmt: skip


def asked(topic: str, name: str) -> list[EncoderPair]:
    """Return two questions for a passage that only who has learned it finds by them."""
    text = f"Hall // Things // The {topic} is kept in the hall that {name} has built."
    rivals = [f"Hall // Wood // The {topic} is made of wood. {n}" for n in "ab"]
    questions = (f"Where is the {topic}?", f"{topic} place")
    return [EncoderPair(question=question, text=text, rivals=rivals) for question in questions]


PAIRS = [pair for one in zip(TOPICS, NAMES, strict=True) for pair in asked(*one)]


class Run(NamedTuple):
    trained: Base
    saved: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("encoder")
    trained = train_encoder(RECIPE, PAIRS, folder, quiet=True)
    save_encoder(trained, folder)
    write_card(folder, ModelCard(kind="encoder", base="encoder"))
    return Run(trained, folder)


def loss_of(base: Base) -> float:
    import torch

    model = contrastive_model(base, RECIPE).eval()
    examples = [(pair.question, pair.text, pair.rivals[0]) for pair in PAIRS[::2]]
    with torch.inference_mode():
        return float(model(**contrasted(examples, base.tokenizer, 32))["loss"])


@pytest.mark.nightly
def test_it_learns_and_keeps_the_embeddings(run: Run) -> None:
    base, saved = load_base("encoder"), load_base(str(run.saved))
    assert saved.weights.keys() == base.weights.keys()
    for name, values in base.weights.items():
        if name.startswith("embeddings."):
            np.testing.assert_allclose(saved.weights[name], values, atol=1e-3)
    assert loss_of(saved) < 0.7 * loss_of(base)
    assert loss_of(saved) == pytest.approx(loss_of(run.trained), abs=0.05)


@pytest.mark.nightly
def test_what_is_saved_embeds_as_what_was_trained(run: Run) -> None:
    """The 8-bit weights, run by ONNX Runtime, against torch."""
    import torch

    model = contrastive_model(run.trained, RECIPE).eval()
    texts = [PAIRS[0].question, PAIRS[0].text]
    batch = run.trained.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        wanted = model.vectors(batch["input_ids"], batch["attention_mask"]).numpy()
    found = np.array(SentenceEncoder(run.saved).embed_documents(texts))
    assert (found * wanted).sum(axis=1) == pytest.approx(1, abs=0.03)


@pytest.mark.nightly
def test_questions_find_the_text_that_was_learned(run: Run) -> None:
    assert 0 <= recall(packaged_encoder(), PAIRS) <= recall(SentenceEncoder(run.saved), PAIRS) <= 1


LONG = "The kettle is kept in the hall that Odin has built for all."


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"answer": 1, "entity": 1}, f"Hall // {LONG}"),
        ({"answer": 1, "entity": None, "title": ""}, LONG),
        ({"answer": 0, "entity": 1}, None),
        ({"answer": None}, None),
        ({"answer": 1, "entity": 0}, None),
        ({"answer": 1, "text": "It is in the hall."}, None),
    ],
)
def test_of_a_readers_rows_those_with_an_answer_count(
    row: dict[str, object], text: str | None
) -> None:
    given = {"question": "Where is it", "title": "Hall", "text": LONG} | row
    wrong = ReadingRow(question="Where is it", title="Hall", text="It rains.", answer=0)
    pairs = pairs_of([ReadingRow.model_validate(given), wrong])
    expected = [("Where is it?", text, ["Hall // It rains."])] if text else []
    assert [(pair.question, pair.text, pair.rivals) for pair in pairs] == expected


def test_pairs_and_rows_are_read_and_all_questions_of_a_text_split_off(tmp_path: Path) -> None:
    write_records(tmp_path / "pairs.jsonl", PAIRS)
    row = ReadingRow(question="Where is it?", text=LONG, answer=1)
    write_records(tmp_path / "rows.jsonl", [row])
    assert read_encoder_pairs(tmp_path / "pairs.jsonl") == PAIRS
    assert [pair.text for pair in read_encoder_pairs(tmp_path / "rows.jsonl")] == [LONG]
    learned, held_out = split_off(PAIRS, 0.25, 0)
    assert len(held_out) == 8
    assert not {pair.text for pair in learned} & {pair.text for pair in held_out}


def test_a_text_that_is_repeated_in_a_batch_is_no_negative() -> None:
    examples = [("a?", "x", "r"), ("b?", "y", None), ("c?", "x", "y")]
    batch = contrasted(examples, packaged_tokenizer(), 32)
    assert batch["repeated"].tolist() == [
        [False, False, True, False, False],
        [False, False, False, False, True],
        [True, False, False, False, False],
    ]
    assert len(batch["question_ids"]) == 3
    assert len(batch["text_ids"]) == 5
