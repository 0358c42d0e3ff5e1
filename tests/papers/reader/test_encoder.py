"""Training the sentence encoder in seconds: what it learns from, that it learns and goes on."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from crag.models.encoder import SentenceEncoder, packaged_encoder
from crag.models.model_card import ModelCard
from crag.papers.reader.asked import AskedQuestion, AskedRow, Rival
from crag.papers.reader.bases import Base, load_base
from crag.papers.reader.encoder import (
    EncoderRecipe,
    contrasted,
    contrastive_model,
    pairs_of,
    recall,
    save_encoder,
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


def asked(topic: str, name: str) -> AskedRow:
    """Return a passage that only who has learned it finds by its question."""
    text = f"The {topic} is kept in the hall that {name} has built."
    other = f"The {topic} is made of wood."
    return AskedRow(
        package="hall", source="hall.md", title="Hall", section="Things", text=text,
        unit=(0, len(text)),
        questions=[
            AskedQuestion(question=f"Where is the {topic}?", kind="plain"),
            AskedQuestion(question=f"{topic} place", kind="search"),
        ],
        rivals=[Rival(title="Hall", section="Wood", text=f"{other} {n}") for n in "abc"],
    )  # fmt: skip


ROWS = [asked(topic, name) for topic, name in zip(TOPICS, NAMES, strict=True)]
PAIRS = [pair for row in ROWS for pair in pairs_of(row)]


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


def test_it_learns_and_keeps_the_embeddings(run: Run) -> None:
    base, saved = load_base("encoder"), load_base(str(run.saved))
    assert saved.weights.keys() == base.weights.keys()
    for name, values in base.weights.items():
        if name.startswith("embeddings."):
            np.testing.assert_allclose(saved.weights[name], values, atol=1e-3)
    assert loss_of(saved) < 0.7 * loss_of(base)
    assert loss_of(saved) == pytest.approx(loss_of(run.trained), abs=0.05)


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


def test_held_out_questions_look_among_all_sections(run: Run) -> None:
    encoders = {"packaged": packaged_encoder(), "own": SentenceEncoder(run.saved)}
    found = recall(encoders, ROWS[:4], ROWS[4:], 0)
    assert {kind: one["questions"] for kind, one in found.items()} == {"plain": 4, "search": 4}
    assert all(0 <= one["packaged"] <= one["own"] <= 1 for one in found.values())


def test_sections_are_read_as_an_index_embeds_them() -> None:
    plain, search = pairs_of(ROWS[0])
    assert plain.question == "Where is the kettle?"
    assert search.question == "kettle place?"
    assert plain.text == f"Hall // Things // {ROWS[0].text}"
    assert plain.rivals == tuple(f"Hall // Wood // The kettle is made of wood. {n}" for n in "ab")


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
    pairs = pairs_of(ReadingRow.model_validate(given))
    assert [(pair.question, pair.text) for pair in pairs] == (
        [("Where is it?", text)] if text else []
    )


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
