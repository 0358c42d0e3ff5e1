"""Fit the blend of a trained model with lexical features, on questions it was not trained on."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.models.batches import length_sorted_batches
from crag.models.lexical import FEATURES, Blend, bare_title
from crag.papers.training.artefacts import rarity_of
from crag.papers.training.models import Trainee
from crag.papers.training.pairs import Pair
from crag.papers.training.recipe import Recipe
from crag.papers.training.splits import check_classes


def fit_blend(
    trainee: Trainee, recipe: Recipe, pairs: Sequence[Pair], kept: Sequence[Pair]
) -> Blend:
    """Fit a logistic regression on the model's output and the lexical features of `kept`.

    The rarity of tokens is counted in the texts of `pairs`, the training data. The fit needs
    held-out questions, because the model's output on its training data is too good. Graded labels
    count in shares.

    Raises:
        TrainingError: the tokenizer does not give the offsets of tokens, or a class is missing.
    """
    from sklearn.linear_model import LogisticRegression

    if not trainee.tokenizer.is_fast:
        message = f"the tokenizer of {recipe.base!r} has no fast form: set blend=0"
        raise TrainingError(message)
    check_classes(kept, "the questions set aside for the blend (blend=0 needs none)")
    rarity = _rarity(trainee, recipe, pairs)
    encodings = _encodings(trainee, recipe, kept)
    titles = [bare_title(pair.title) for pair in kept]
    unfitted = Blend(rarity, np.zeros(len(FEATURES) + 1), 0.0)
    inputs = np.c_[_outputs(trainee, recipe, encodings), unfitted.features(encodings, titles)]
    labels = np.array([pair.label for pair in kept])
    model = LogisticRegression(C=10.0, max_iter=5000).fit(
        np.r_[inputs, inputs],
        np.r_[np.ones(len(kept)), np.zeros(len(kept))],
        np.r_[labels, 1 - labels],
    )
    return Blend(rarity, model.coef_[0].astype(np.float64), float(model.intercept_[0]))


def _rarity(trainee: Trainee, recipe: Recipe, pairs: Sequence[Pair]) -> NDArray[np.float32]:
    texts = list(dict.fromkeys(with_title(pair.title, pair.text) for pair in pairs))
    encoded = trainee.tokenizer(
        texts, add_special_tokens=False, truncation=True, max_length=recipe.max_length
    )
    return rarity_of(encoded["input_ids"], len(trainee.tokenizer))


def _encodings(trainee: Trainee, recipe: Recipe, pairs: Sequence[Pair]) -> Any:
    return trainee.tokenizer(
        [pair.question for pair in pairs],
        [with_title(pair.title, pair.text) for pair in pairs],
        truncation="longest_first",
        max_length=recipe.max_length,
    ).encodings


def _outputs(trainee: Trainee, recipe: Recipe, encodings: Sequence[Any]) -> NDArray[np.float64]:
    import torch

    model = trainee.model.eval()  # type: ignore[no-untyped-call]
    outputs = np.empty(len(encodings))
    lengths = [len(encoding) for encoding in encodings]
    for batch in length_sorted_batches(lengths, recipe.batch_size):
        chosen = [encodings[index] for index in batch]
        inputs = {"input_ids": [part.ids for part in chosen]}
        if "token_type_ids" in trainee.tokenizer.model_input_names:
            inputs["token_type_ids"] = [part.type_ids for part in chosen]
        padded = trainee.tokenizer.pad(inputs, return_tensors="pt").to(model.device)
        with torch.inference_mode():
            outputs[batch] = model(**padded).logits[:, 0].float().cpu().numpy()
    return outputs
