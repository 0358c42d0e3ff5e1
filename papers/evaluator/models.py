"""The model to fine-tune: any encoder, or a T5, with one output."""

from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import TrainingError
from crag.extras import require
from crag.models.model_card import ModelKind
from crag.papers.evaluator.recipe import Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_FEWEST_TOKENS = 32


class Trainee(NamedTuple):
    """A model to train, its tokenizer and the kind of evaluator it becomes."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    kind: ModelKind


def load_trainee(recipe: Recipe) -> Trainee:
    """Load the base with a new head of one output, ready for training with `recipe`.

    Raises:
        TrainingError: the base cannot be loaded, or does not support one output.
        MissingPackageError: the extra `train` is not installed.
    """
    require("train", "training", "torch", "transformers", "accelerate", "sklearn")
    if recipe.method != "full":
        require("train", "training with LoRA", "peft")
    from safetensors import SafetensorError
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, set_seed

    place = recipe.base
    set_seed(recipe.seed)  # The head is new and initialised at random.
    try:
        config = AutoConfig.from_pretrained(place, num_labels=1)
        _set_dropout(config, recipe.dropout)
        tokenizer = AutoTokenizer.from_pretrained(place)
        if len(tokenizer) - len(tokenizer.all_special_ids) < _FEWEST_TOKENS:
            # Without one, transformers builds a tokenizer with an empty vocabulary.
            raise ValueError("there is no tokenizer")  # noqa: TRY301 - as loading it should
        model = AutoModelForSequenceClassification.from_pretrained(
            place, config=config, use_safetensors=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().partition("\n")[0]
        message = (
            f"the base model {recipe.base!r} cannot be loaded: {first}. Give a folder with "
            "config.json, *.safetensors and a tokenizer, or an id on the Hugging Face hub"
        )
        raise TrainingError(message) from error
    kind: ModelKind = "t5" if config.model_type == "t5" else "cross_encoder"
    _check_length(config, recipe)
    if recipe.freeze_embeddings:
        _freeze_embeddings(model)
    return Trainee(_with_adapters(model, recipe), tokenizer, kind)


def merged(model: Any) -> Any:
    """Return the model with its adapters merged into the weights."""
    return model.merge_and_unload() if hasattr(model, "merge_and_unload") else model


def _with_adapters(model: Any, recipe: Recipe) -> Any:
    if recipe.method == "full":
        return model
    from peft import LoraConfig, TaskType, get_peft_model

    return get_peft_model(
        model,
        LoraConfig(
            task_type=TaskType.SEQ_CLS,
            r=recipe.lora_rank,
            lora_alpha=recipe.lora_rank,
            target_modules="all-linear",
        ),
    )


def _check_length(config: Any, recipe: Recipe) -> None:
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and recipe.max_length > most:
        message = f"{recipe.base!r} reads at most {most} tokens: set max_length={most} or less"
        raise TrainingError(message)


def _freeze_embeddings(model: Any) -> None:
    model.get_input_embeddings().requires_grad_(requires_grad=False)
    others = getattr(getattr(model, model.base_model_prefix), "embeddings", None)
    if others is not None:  # Positions and segments, if the model stores them together.
        others.requires_grad_(requires_grad=False)


def _set_dropout(config: Any, dropout: float | None) -> None:
    if dropout is None:
        return
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout_rate", "dropout"):
        if hasattr(config, name):
            setattr(config, name, dropout)
