"""From the name of an evaluator, its folder or its address to the evaluator."""

import json
from contextlib import suppress
from pathlib import Path

from crag.errors import EvaluatorError, did_you_mean
from crag.evaluators.chat import ChatEvaluator
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.reader import ReaderEvaluator
from crag.evaluators.rerank import RerankEvaluator
from crag.evaluators.t5 import T5Evaluator
from crag.extras import is_attribute, part_named
from crag.models.model import MODEL
from crag.models.model_card import CARD, read_card
from crag.parts import ChatModel, Evaluator
from crag.plain import real_path
from crag.prompts import PACKAGED, Prompts

NAMES = ("default", "reader", "chat")


def load_evaluator(
    name: str = "default",
    *,
    model: ChatModel | None = None,
    prompts: Prompts = PACKAGED,
    token: str | None = None,
) -> Evaluator:
    """Return the evaluator called `name`; weights load on first use.

    `default` is `reader`, which ships with this package: it grades a passage and marks evidence and
    answer in the same pass. `chat` has `model` grade the texts, with `prompts`. A name
    ``module:attribute`` is that of your own evaluator, or of what makes it. A folder holds what
    `crag train` wrote, a T5 in the official format, any cross-encoder with one output, or
    thresholds of the packaged reader that `crag calibrate` wrote.
    An address, ``https://HOST/v1/rerank?model=…``, is that of a rerank API, which may ask for a
    `token`.

    Raises:
        CragError: there is none of that name, there is no chat model to ask, or the folder
            holds no evaluator, such as a model of three outputs.
    """
    if name in {"default", "reader"}:
        return ReaderEvaluator.packaged()
    if name == "chat":
        if model is None:
            message = "the evaluator 'chat' asks a chat model: set OPENAI_API_KEY or CRAG_MODEL"
            raise EvaluatorError(message)
        return ChatEvaluator(model, prompts=prompts)
    if name.lower().startswith(("http://", "https://")):
        return RerankEvaluator(name, token=token)
    if is_attribute(name):
        return part_named(name, "CRAG_EVALUATOR", Evaluator)  # type: ignore[type-abstract]
    if not (folder := real_path(name)).is_dir():
        others = "or give module:attribute, a folder, or the address of a rerank API"
        near = did_you_mean(name, NAMES)
        raise EvaluatorError(f"there is no evaluator or folder {name!r} ({near}), {others}")
    return _stored(folder)


def _stored(folder: Path) -> Evaluator:
    """Return the evaluator in `folder`, by what its files say it is; a lone card is thresholds."""
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    card = read_card(folder)
    if card and names == {CARD}:
        packaged = ReaderEvaluator.packaged()
        if packaged.card.files != card.files:
            problem = "its thresholds were fitted to another reader than the packaged one"
            raise EvaluatorError(f"{folder}: {problem}: run crag calibrate --write again")
        return ReaderEvaluator(packaged.model, card)
    if MODEL in names:
        return ReaderEvaluator.stored(folder)
    with suppress(OSError, ValueError, AttributeError):
        if json.loads((folder / "config.json").read_text("utf-8")).get("model_type") == "t5":
            return T5Evaluator(folder)
    return CrossEncoderEvaluator(folder)
