"""A causal language model with reflection tokens, loaded whole or not at all."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import ModelError
from crag.models.devices import find_device, quietly
from crag.reflection.tokens import END, token_ids

if TYPE_CHECKING:
    import torch

_logger = logging.getLogger(__name__)


class LanguageModel(NamedTuple):
    """A model with its tokenizer, on its device, in evaluation mode."""

    model: Any
    tokenizer: Any
    device: "torch.device"
    names: Mapping[int, str]
    """The reflection token of each id; the tokenizer's own token of the end is `END`."""
    context: int | None
    """Tokens that prompt and answer may have together; None if the model does not say."""


def load(place: str, *, revision: str | None, device: str | None, dtype: str) -> LanguageModel:
    """Load a model from a folder or the Hugging Face hub.

    Raises:
        ModelError: it is neither, it holds no safetensors, its weights do not fit its
            configuration, its tokenizer lacks a reflection token, or there is no such device.
    """
    where = find_device(device, partial(ModelError, place, "unknown"))
    tokenizer = load_tokenizer(place, revision)
    names_of(tokenizer)  # Before the weights, which take longer.
    _logger.info("loading the reflecting model %s onto %s", place, where)
    return around(place, _load_weights(place, revision, dtype).to(where), tokenizer)


def around(place: str, model: Any, tokenizer: Any) -> LanguageModel:
    """Return a model that is loaded already, with its tokenizer.

    Raises:
        ModelError: the tokenizer lacks a reflection token, or the model has no row for one.
    """
    from transformers import GenerationConfig

    names = names_of(tokenizer)
    rows = model.get_input_embeddings().num_embeddings
    if max(names) >= rows:
        problem = (
            f"its tokenizer has ids up to {max(names)} but its embeddings only {rows} rows. "
            "Resize them, or take the tokenizer that belongs to the weights"
        )
        raise ModelError(place, "unknown", problem)
    # A checkpoint's own habits, such as a repetition penalty, would change what is greedy.
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return LanguageModel(model.eval(), tokenizer, model.device, names, context)


def load_tokenizer(place: str, revision: str | None = None) -> Any:
    """Return the tokenizer of a folder or a model on the hub.

    Raises:
        ModelError: there is none that can be read.
    """
    from transformers import AutoTokenizer

    with _failing(place, "its tokenizer cannot be loaded. Check the name, the folder, the network"):
        return AutoTokenizer.from_pretrained(place, revision=revision)


def names_of(tokenizer: Any) -> dict[int, str]:
    """Return the reflection token of each id, and `END` for the id that ends a text.

    Raises:
        ModelError: the tokenizer lacks a reflection token.
    """
    names = {number: token for token, number in token_ids(tokenizer).items()}
    if tokenizer.eos_token_id is not None:
        names[tokenizer.eos_token_id] = END
    return names


def check_folder(folder: Path) -> None:
    """Check what shows without loading weights.

    Raises:
        ModelError: there is no such folder, or it lacks a file.
    """
    if not folder.is_dir():
        raise ModelError(str(folder), "unknown", "there is no such folder")
    if not (folder / "config.json").is_file():
        raise ModelError(str(folder), "unknown", "there is no config.json. Copy the model whole")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(str(folder), "unknown", _NO_SAFETENSORS)


_NO_SAFETENSORS = (
    "there are no weights as safetensors, and pickled ones (.bin) could run code. Convert them "
    "where you trust them: load them there and call save_pretrained"
)


def _load_weights(place: str, revision: str | None, dtype: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    with _failing(place, f"its weights cannot be loaded. If {_NO_SAFETENSORS}"), quietly():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place,
            revision=revision,
            dtype=dtype if dtype == "auto" else getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
        )
    model, missing = loaded[0], loaded[1]["missing_keys"]
    if missing:
        problem = f"{len(missing)} weights are missing, such as {min(missing)}. Copy them again"
        raise ModelError(place, "unknown", problem)
    return model


@contextmanager
def _failing(place: str, problem: str) -> Iterator[None]:
    """Turn what transformers raises while it loads into an error that says what to do."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, SafetensorError) as error:
        if isinstance(error, ModelError):
            raise
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelError(place, "unknown", f"{problem} ({first})") from error
