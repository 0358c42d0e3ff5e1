"""What the tests of training and of trained models share: made-up data, tiny models, recipes."""

import json
import random
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.correction.strips import with_title
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.trainer import Recipe, Trainee
from crag.papers.self_rag.tiny_base import tiny_language_model

PACKAGED = Path(str(files("crag.models").joinpath("crag_reader_l6_v2")))
"""The packaged reader, whose tokenizer transformers reads."""
TINY_T5 = Path(__file__).parent / "fixtures" / "tiny_t5"
TOPICS = (
    "kettle", "violin", "glacier", "passport", "beehive", "volcano", "compass", "saddle",
    "lantern", "orchard", "turbine", "harbour", "walnut", "sundial", "trombone", "fossil",
)  # fmt: skip
PLACES = ("Peru", "Norway", "Kenya", "Japan", "Malta")
_OTHER = (
    "how old is the of in it was built by rain fell on at night a an and who owns forty years "
    "never seen there museum stands near river // . , ? ( ) instrument"
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def packaged_tokenizer() -> Any:
    """Return the tokenizer of the packaged models as transformers loads it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(PACKAGED)


def some_pairs(count: int, seed: int = 0) -> list[Pair]:
    """Return pairs of which every other one is relevant, two for each question."""
    draw = random.Random(seed)  # noqa: S311 - made-up data
    pairs: list[Pair] = []
    places = [(topic, place) for place in PLACES for topic in TOPICS]
    for topic, place in draw.sample(places, k=(count + 1) // 2):
        question, other = f"How old is the {topic} in {place}?", draw.choice(TOPICS)
        title = f"{topic.title()} of {place} (instrument)"
        text = f"The {topic} of {place} is forty years old. It stands near the river."
        pairs += [
            Pair(question, title, text, 1.0),
            Pair(question, f"{other.title()} museum", f"Rain fell on the {other} at night.", 0.0),
        ]
    return pairs[:count]


def tiny_bert(folder: Path, *, outputs: int | None = None, seed: int = 0) -> Path:
    """Save a BERT of two layers with random weights; with a head if `outputs` says how wide."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    words = sorted({*_OTHER.split(), *(w.lower() for w in TOPICS + PLACES)})
    pieces = [*_LETTERS, *(f"##{letter}" for letter in _LETTERS)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    every = dict.fromkeys([*special, *words, *pieces])  # Some words are letters.
    vocabulary = {word: number for number, word in enumerate(every)}
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        initializer_range=0.3,
        num_labels=outputs or 1,
    )
    model = BertForSequenceClassification(config) if outputs else BertModel(config)
    model.save_pretrained(folder)
    BertTokenizer(vocab=vocabulary, model_max_length=128).save_pretrained(folder)
    return folder


def small_recipe(base: Path, **changes: Any) -> Recipe:
    """Return a recipe of seconds."""
    values = {"base": str(base), "batch_size": 8, "max_length": 48, "learning_rate": 3e-3}
    return Recipe.model_validate(values | changes)


def outputs_of(trainee: Trainee, pairs: Sequence[Pair], max_length: int) -> NDArray[np.float64]:
    """Return a plain forward pass for each pair, alone and without padding."""
    import torch

    model = trainee.model.eval()
    with torch.inference_mode():
        rows = [
            model(
                **trainee.tokenizer(
                    pair.question,
                    with_title(pair.title, pair.text),
                    truncation="longest_first",
                    max_length=max_length,
                    return_tensors="pt",
                )
            ).logits[0, 0]
            for pair in pairs
        ]
    return np.array([float(row) for row in rows])


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


def tiny_base(folder: Path) -> Path:
    """Save a tiny language model that knows the words of the made-up articles."""
    texts = [row["text"] + row["questions"][0]["question"] for row in articles(80)]
    return tiny_language_model(folder, texts)
