"""A larger reader that a reader learns from, beside its labels (knowledge distillation).

It has the same outputs for a passage and for each token, and learns them from the same rows. Its
tokenizer has to cut texts into the same word pieces, as that of all-mpnet-base-v2 does.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.errors import TrainingError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase

_UNUSED = "["
"""How the tokens begin that no text has."""


class TeacherTokens:
    """Lays out for a teacher what `reads` tokenised for the reader, and says where each token is.

    Raises:
        TrainingError: the folder has no tokenizer, or one that cuts texts into other pieces.
    """

    def __init__(self, folder: Path, reads: "PreTrainedTokenizerBase") -> None:
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise _unusable(folder, error) from error
        own = reads.get_vocab()
        vocabulary = tokenizer.get_vocab()
        missing = [one for one in own if one not in vocabulary and not one.startswith(_UNUSED)]
        if missing:
            message = f"the teacher {folder} cuts texts into other pieces: it lacks {missing[0]!r}"
            raise TrainingError(message)
        unknown = tokenizer.unk_token_id
        self._ids = {number: vocabulary.get(token, unknown) for token, number in own.items()}
        self._separator = own["[SEP]"]
        self._padding = tokenizer.pad_token_id
        self._has_types = "token_type_ids" in tokenizer.model_input_names
        pair = tokenizer("a", "a")["input_ids"]
        first, second = (place for place, token in enumerate(pair) if token == vocabulary["a"])
        self._start, self._middle = pair[:first], pair[first + 1 : second]
        self._end = pair[second + 1 :]

    def batch(self, inputs: Sequence[Sequence[int]], longest: int) -> dict[str, "Tensor"]:
        """Return tokens, mask and kinds of token, and for each token of the reader its place."""
        import torch

        rows = [self._row(ids) for ids in inputs]
        width = max(len(ids) for ids, _, _ in rows)
        at = torch.arange(width)[None]
        sizes = torch.tensor([len(ids) for ids, _, _ in rows])[:, None]
        batch = {
            "teacher_input_ids": torch.tensor(
                [ids + [self._padding] * (width - len(ids)) for ids, _, _ in rows]
            ),
            "teacher_attention_mask": (at < sizes).long(),
            "teacher_places": torch.tensor(
                [places + [0] * (longest - len(places)) for _, places, _ in rows]
            ),
        }
        if self._has_types:
            second = torch.tensor([text for *_, text in rows])[:, None]
            batch["teacher_token_type_ids"] = ((at >= second) & (at < sizes)).long()
        return batch

    def _row(self, ids: Sequence[int]) -> tuple[list[int], list[int], int]:
        """Return the teacher's tokens, the reader's places in them, and where the text begins."""
        end = list(ids).index(self._separator)
        question, text = ids[1:end], ids[end + 1 : -1]
        begin = len(self._start)
        second = begin + len(question) + len(self._middle)
        tokens = [
            *self._start, *(self._ids[token] for token in question), *self._middle,
            *(self._ids[token] for token in text), *self._end,
        ]  # fmt: skip
        places = [
            0, *range(begin, begin + len(question)), begin + len(question),
            *range(second, second + len(text)), second + len(text),
        ]  # fmt: skip
        return tokens, places, second


def teaching_model(folder: Path, outputs: int, marks: int) -> "nn.Module":
    """Return the model of a folder with outputs for a passage and marks for each token.

    Its embeddings stay as they are.

    Raises:
        TrainingError: the folder holds no model.
    """
    import torch
    from torch import nn
    from transformers import AutoConfig, AutoModel

    class TeachingModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = AutoConfig.from_pretrained(
                str(folder), local_files_only=True,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            )  # fmt: skip
            self.encoder = AutoModel.from_pretrained(
                str(folder), config=config, local_files_only=True, dtype=torch.float32
            )
            self.outputs = nn.Linear(config.hidden_size, outputs)
            self.marks = nn.Linear(config.hidden_size, marks)
            for layer in (self.outputs, self.marks):
                nn.init.normal_(layer.weight, std=config.initializer_range)
                nn.init.zeros_(layer.bias)
            self.encoder.get_input_embeddings().requires_grad_(requires_grad=False)

        def forward(self, batch: Mapping[str, Any]) -> Any:
            """Return outputs, and marks in the order of the reader's tokens."""
            named = ("input_ids", "attention_mask", "token_type_ids")
            given = {name: batch[f"teacher_{name}"] for name in named if f"teacher_{name}" in batch}
            found = self.encoder(**given)
            pooled = getattr(found, "pooler_output", None)
            if pooled is None:
                pooled = found.last_hidden_state[:, 0]
            marked = self.marks(found.last_hidden_state).float()
            places = batch["teacher_places"][:, :, None].expand(-1, -1, marked.shape[2])
            return self.outputs(pooled).float(), marked.gather(1, places)

    try:
        return TeachingModel()
    except (OSError, ValueError) as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: Exception) -> TrainingError:
    first = str(error).strip().partition("\n")[0]
    return TrainingError(f"the teacher {folder} cannot be used: {first}")
