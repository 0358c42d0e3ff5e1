"""From the name of an evaluator, or the folder of one, to the evaluator."""

import json
from pathlib import Path
from typing import Literal, cast

from langchain_core.embeddings import Embeddings

from crag.errors import EvaluatorError, did_you_mean
from crag.evaluators.chat import ChatEvaluator, PromptStyle
from crag.evaluators.chat_batch import BatchChatEvaluator
from crag.evaluators.checkpoint import check_classifier, locate
from crag.evaluators.cosine import CosineEvaluator
from crag.evaluators.cross_encoder import CrossEncoderEvaluator
from crag.evaluators.reader import ReaderEvaluator, packaged_reader
from crag.evaluators.remote import SECONDS, connect, is_service
from crag.evaluators.t5 import T5Evaluator
from crag.evaluators.torch_pairs import TorchPairs
from crag.extras import is_attribute, part_named
from crag.models.encoder import packaged_encoder
from crag.models.model import MODEL
from crag.models.model_card import CARD, read_card
from crag.parts import ChatModel, Evaluator
from crag.prompts import PACKAGED, Prompts
from crag.runtime.environment import EVALUATORS

NAMES = EVALUATORS
ASKING = frozenset(name for name in NAMES if name.startswith("chat-"))
"""The names of those that ask a chat model."""
Compat = Literal["official"]
_LONGEST = 512


def load_evaluator(  # noqa: PLR0913 - a return for each kind, and what some need
    name: str = "default",
    embeddings: Embeddings | None = None,
    *,
    model: ChatModel | None = None,
    compat: Compat | None = None,
    prompts: Prompts = PACKAGED,
    token: str | None = None,
    seconds: float = SECONDS,
    reads: bool | None = None,
) -> Evaluator:
    """Return the evaluator called `name`, or the one in the folder `name`; weights load on use.

    `default` is `reader`, which ships with this package: it grades a passage and marks evidence and
    answer in the same pass. `cosine` is the calibrated cosine over the packaged encoder, to which
    the calibration belongs, or over `embeddings`. `chat-direct`, `chat-chain-of-thought` and
    `chat-few-shot` are the paper's baselines, `chat-levels` gives the poster's grades and
    `chat-batch` grades all texts at once; they ask `model` with `prompts`. ``module:attribute`` is
    an evaluator of your own, or what makes one. A folder, or an id on the Hugging Face hub, holds
    what `crag train` wrote, a T5 in the official format, any cross-encoder with one output, or
    thresholds of the packaged reader that `crag calibrate` wrote. `compat` is for T5: see
    `T5Evaluator`. The address of a service, ``http://HOST:PORT``, is asked over the network, for at
    most `seconds` a request and with `token`; `reads` is for one that need not be there yet: see
    `crag.evaluators.remote.connect`.

    Raises:
        EvaluatorError: there is none of that name, a chat evaluator has no model to ask, or the
            folder holds no evaluator, such as a model of three outputs, or the service does not
            answer.
    """
    if is_service(name):
        return connect(name, token=token, seconds=seconds, reads=reads)
    if name in ASKING:
        return _chat(name, model, prompts)
    if name in {"default", "reader"}:
        return packaged_reader()
    if name == "cosine":
        return CosineEvaluator.fitted(packaged_encoder() if embeddings is None else embeddings)
    if is_attribute(name):
        return part_named(name, "CRAG_EVALUATOR", Evaluator)  # type: ignore[type-abstract]
    if "/" not in name and not Path(name).is_dir():
        known = ", ".join(NAMES)
        near = did_you_mean(name, NAMES)
        hint = "" if near.startswith("known") else f" ({near})"
        others = "the folder of one, or the address of a service"
        message = f"no evaluator is called {name!r}{hint}; there are: {known}, or give {others}"
        raise EvaluatorError(message)
    return _stored(locate(name, None), compat)


def _chat(name: str, model: ChatModel | None, prompts: Prompts) -> Evaluator:
    if model is None:
        message = f"the evaluator {name!r} asks a chat model: set OPENAI_API_KEY or CRAG_MODEL"
        raise EvaluatorError(message)
    if name == "chat-batch":
        return BatchChatEvaluator(model, prompts=prompts)
    style = cast("PromptStyle", name.removeprefix("chat-").replace("-", "_"))
    return ChatEvaluator(model, style=style, prompts=prompts)


def _stored(folder: Path, compat: Compat | None) -> Evaluator:
    """Return the evaluator in `folder`, by what its files say it is; a lone card is thresholds."""
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    card = read_card(folder)
    if card and names == {CARD}:
        return packaged_reader().recalibrated(card)
    if MODEL in names:
        return ReaderEvaluator.stored(folder)
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        if not isinstance(config, dict):
            raise ValueError("it is no JSON object")  # noqa: TRY004, TRY301 - as what cannot be read
    except (OSError, ValueError) as error:
        message = (
            f"{folder} holds no evaluator: its config.json cannot be read ({error}). Give a folder "
            "that crag train wrote, or a T5 in the official format"
        )
        raise EvaluatorError(message) from error
    if config.get("model_type") == "t5":
        evaluator = T5Evaluator(folder, compat=compat)
        evaluator.verify()
        return evaluator
    check_classifier(folder, config)
    positions = int(config.get("max_position_embeddings") or _LONGEST)
    model = TorchPairs(folder, max_length=card.max_length if card else min(positions, _LONGEST))
    return CrossEncoderEvaluator(model, card=card)
