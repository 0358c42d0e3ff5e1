"""Fine-tune a causal language model that knows the reflection tokens: a critic or a generator."""

import hashlib
import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from crag.errors import CragError, SettingsError
from crag.extras import require
from crag.papers.files import file_digest
from crag.papers.training import (
    LOG_STEPS,
    TrainingRecipe,
    Visits,
    fixed_order,
    run_training,
    valid_recipe,
)
from crag.plain import first_line
from crag.reflection_tokens import PAD, TOKENS, token_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100
"""The label of a token that takes no part in the loss."""


LanguageModelKind = Literal["critic", "generator"]
NewRows = Literal["words", "mean"]
"""How embeddings of new tokens begin: as the mean of the pieces of the token's own words, or as the
mean of all embeddings (the critic of the released code)."""


class LanguageRecipe(TrainingRecipe):
    """The settings of one run; rates and schedule are the paper's (Self-RAG, Appendix B)."""

    base: str = "HuggingFaceTB/SmolLM2-135M-Instruct"
    """Causal language model: a folder, or an id on the Hugging Face hub."""
    new_rows: NewRows = "words"
    """How embeddings of the added tokens begin: mean of the token's words, or of all embeddings."""
    epochs: int = Field(default=3, ge=1, le=1000)
    """Number of epochs."""
    steps: int | None = Field(default=None, ge=1)
    """Steps in all; empty: all epochs."""
    batch_size: int = Field(default=4, ge=1, le=4096)
    """Records in one forward pass."""
    accumulation: int = Field(default=8, ge=1, le=4096)
    """Batches per step of the optimiser; several processes share them."""
    learning_rate: float = Field(default=2e-5, gt=0, le=1)
    schedule: Literal["linear", "cosine"] = "linear"
    """How the learning rate falls after the warm-up, to zero."""
    warmup: float = Field(default=0.03, ge=0, le=1)
    """Share of the steps for warm-up."""
    weight_decay: float = Field(default=0.0, ge=0, le=1)
    max_length: int = Field(default=2048, ge=16, le=1_000_000)
    """Tokens of a record; a critic's evidence is cut to it, a generator's record at its end."""
    learn_unsupported: bool = True
    """Of a generator: learn the words of sentences that their IsSup token calls unsupported, as the
    paper does; without it only their tokens are learned."""
    as_released: bool = False
    """Of a generator: learn the tokens that the released program learns, faults included."""
    gradient_checkpointing: bool = False
    """Compute activations twice rather than keep them: less memory, a third more time."""


def language_recipe(
    kind: LanguageModelKind, file: Path | None, changes: Mapping[str, object]
) -> LanguageRecipe:
    """Return the recipe of the table `kind` of a TOML file, if there is one, with `changes`.

    Raises:
        SettingsError: the file cannot be read, has no such table, or a value is out of range.
    """
    table: Mapping[str, object] = {}
    if file is not None:
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8-sig"))[kind]
        except (OSError, ValueError) as error:
            raise SettingsError("recipe", str(file), f"it cannot be read: {error}") from error
        except KeyError:
            raise SettingsError("recipe", str(file), f"it has no table [{kind}]") from None
    return valid_recipe(LanguageRecipe, {**table, **changes})


class LanguageModelCard(BaseModel):
    """The file ``card.json`` beside the weights."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    kind: LanguageModelKind
    base: str
    data: list[dict[str, str | int]] = []
    """Name, digest and number of records of each file that it was trained on."""
    recipe: dict[str, object] = {}
    """The settings of the training run, seed included."""
    left_out: dict[str, int] = {}
    """Records that were not used, counted by reason."""
    metrics: dict[str, dict[str, float]] = {}
    """By judgement for a critic; `training` has the first and the last loss."""


def language_card(
    kind: LanguageModelKind, recipe: LanguageRecipe, data: Mapping[Path, int]
) -> LanguageModelCard:
    """Return a card without metrics; `data` are the files with the number of their records."""
    files: list[dict[str, str | int]] = [
        {"name": path.name, "sha256": file_digest(path), "records": count}
        for path, count in data.items()
    ]
    told = recipe.model_dump(mode="json")
    return LanguageModelCard(kind=kind, base=recipe.base, data=files, recipe=told)


class LanguageModel(NamedTuple):
    """A model with the reflection tokens in its vocabulary, and its tokenizer."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    added: list[int]
    """Ids of the tokens that it did not have before."""


class TokenText(NamedTuple):
    """One record as tokens; `labels` are the tokens themselves where they are learned."""

    ids: NDArray[np.int32]
    labels: NDArray[np.int32]


class TrainedLanguageModel(NamedTuple):
    """A finished run: the model, and entries of Trainer's log."""

    model: Any
    tokenizer: Any
    history: list[dict[str, float]]
    is_main: bool = True
    """Whether this process is the one that saves; others have done their part."""
    weights: dict[str, Any] | None = None
    """The whole weights where `model` holds a shard of each (FSDP, DeepSpeed)."""


def token_text(ids: Sequence[int], learned: Sequence[bool]) -> TokenText:
    """Return the tokens with `IGNORED` as the label of those that are not learned."""
    tokens = np.asarray(ids, dtype=np.int32)
    return TokenText(tokens, np.where(np.asarray(learned, dtype=bool), tokens, IGNORED))


def load_base(recipe: LanguageRecipe) -> LanguageModel:
    """Load the base of a recipe with the reflection tokens, and `PAD` if nothing pads.

    Raises:
        CragError: it cannot be loaded, its tokenizer has no token that ends a text, or it reads
            fewer tokens than `max_length`.
        MissingPackageError: the extra `train` is not installed.
    """
    require("train", "training", "torch", "transformers", "accelerate")
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    set_seed(recipe.seed)
    place = recipe.base
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
        if tokenizer.eos_token_id is None:
            raise ValueError("its tokenizer has no token that ends a text (eos_token)")  # noqa: TRY301
        # Weights may be pickled, as the released ones are, but hold no code.
        model: Any = AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.float32, weights_only=True
        )
    except (
        OSError, ValueError, KeyError, RuntimeError, TypeError, SafetensorError, UnpicklingError,
    ) as error:  # fmt: skip
        message = (
            f"the base model {place!r} cannot be loaded: {first_line(error)}. Give a folder with "
            "config.json, *.safetensors and a tokenizer, or an id on the Hugging Face hub"
        )
        raise CragError(message) from error
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if most is not None and recipe.max_length > most:
        message = f"{place!r} reads at most {most} tokens: set max_length={most} or less"
        raise CragError(message)
    return LanguageModel(model, tokenizer, add_tokens(model, tokenizer, recipe.new_rows))


def add_tokens(model: Any, tokenizer: Any, new_rows: NewRows = "words") -> list[int]:
    """Add what is missing of the reflection tokens, and `PAD`; return the ids of the new rows.

    A tokenizer that pads with the end would hide the end from the loss, so it is given `PAD` too.
    """
    import torch
    from tokenizers import AddedToken

    pads = tokenizer.pad_token_id not in {None, tokenizer.eos_token_id}
    known = tokenizer.get_vocab()
    missing = [token for token in (TOKENS if pads else (*TOKENS, PAD)) if token not in known]
    pieces = {token: _pieces(tokenizer, token) for token in missing}
    tokenizer.add_tokens(
        [AddedToken(token, normalized=False, special=True) for token in missing],
        special_tokens=True,
    )
    if not pads:
        tokenizer.pad_token = PAD
    token_ids(tokenizer)
    model.config.pad_token_id = tokenizer.pad_token_id
    ids: list[int] = tokenizer.convert_tokens_to_ids(missing)
    before = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > before:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with torch.no_grad():
        for table in {id(e.weight): e.weight for e in _tables(model)}.values():
            mean = table[: min(before, min(ids, default=before))].mean(0)
            for token, row in zip(missing, ids, strict=True):
                own = pieces[token] if new_rows == "words" else []
                table[row] = table[own].mean(0) if own else mean
    return ids


def _tables(model: Any) -> list[Any]:
    output = model.get_output_embeddings()
    return [model.get_input_embeddings(), *([output] if output is not None else [])]


def _pieces(tokenizer: Any, token: str) -> list[int]:
    """Return the ids of the words of a token, while it is not one yet."""
    words = token.strip("[]<>/").replace("/", " ").replace(":", " ")
    ids: list[int] = tokenizer(f" {words}", add_special_tokens=False).input_ids
    return [number for number in ids if number != tokenizer.unk_token_id]


def train_language_model(
    base: LanguageModel,
    recipe: LanguageRecipe,
    texts: Sequence[TokenText],
    output: Path,
) -> TrainedLanguageModel:
    """Minimise next-token loss on what is learned, or resume a run of the same recipe and texts.

    Processes that `accelerate launch` started share the batches of each step, and with FSDP or
    DeepSpeed also the weights.

    Raises:
        CragError: there is nothing to learn, the loss is not finite, the disk is full, or the
            processes cannot share a step.
    """
    from transformers import DataCollatorForSeq2Seq

    if not any((text.labels != IGNORED).any() for text in texts):
        message = "no record has a token to learn: raise max_length, or check the data"
        raise CragError(message)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if recipe.accumulation % processes:
        message = (
            f"accumulation={recipe.accumulation} batches cannot be shared by {processes} "
            "processes: set a multiple of their number"
        )
        raise CragError(message)
    if recipe.gradient_checkpointing:
        # transformers renamed it within version 5, and warns of the older name since.
        renamed = getattr(base.model, "activation_checkpointing_enable", None)
        (renamed or base.model.gradient_checkpointing_enable)({"use_reentrant": False})
    lengths = [len(text.ids) for text in texts]
    order = fixed_order(lengths, recipe.batch_size, recipe.seed, recipe.epochs)
    steps = recipe.steps or math.ceil(len(order) / (recipe.batch_size * recipe.accumulation))
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.ids.tobytes() + text.labels.tobytes())

    def example(index: int, _: int) -> dict[str, list[int]]:
        ids, labels = (part.tolist() for part in texts[index])
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}

    trainer = run_training(
        recipe, base.model, Visits(order, example), digest.hexdigest(), output,
        collator=DataCollatorForSeq2Seq(base.tokenizer, label_pad_token_id=IGNORED),
        steps=steps,
        gradient_accumulation_steps=recipe.accumulation // processes,
        warmup_steps=round(recipe.warmup * steps),
        lr_scheduler_type=recipe.schedule,
        logging_steps=min(LOG_STEPS, max(1, steps // 10)),
    )  # fmt: skip
    is_sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    weights = trainer.accelerator.get_state_dict(trainer.model_wrapped) if is_sharded else None
    history, is_main = trainer.state.log_history, trainer.is_world_process_zero()
    trained = TrainedLanguageModel(base.model, base.tokenizer, history, is_main, weights)
    # What shares the steps goes before the group of processes: the last to hold the group may wait
    # for ever for its threads, which want the lock that Python holds then.
    trainer.model_wrapped = base.model
    trainer.accelerator.free_memory()
    trainer.accelerator.end_training()
    return trained
