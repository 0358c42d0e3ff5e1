"""The sentence encoder: texts to vectors, on this machine."""

from functools import cache, partial
from importlib.resources import files

from langchain_core.embeddings import Embeddings

from crag.errors import ModelError
from crag.models.model import Input, Model, ModelFiles
from crag.models.model_card import CARD, ModelCard

DEFAULT_MODEL = "crag-minilm-l6-v2"
"""all-MiniLM-L6-v2, taught to find the section that answers a question; what an index records."""
PACKAGED = "crag_minilm_l6_v2"
"""The folder of the packaged encoder, beside this file."""
MAX_LENGTH = 256
"""Tokens of a text that are read, with the special ones."""
_LONGEST_TOKEN = 100
"""Characters: a longer word is one unknown token."""


class SentenceEncoder(Embeddings):
    """Embed with crag's own model.

    It loads on first use, which several threads may share. Vectors have 384 numbers and length 1.

    Raises:
        ModelError: on first use, if a file of the model is missing or damaged.
    """

    name = DEFAULT_MODEL
    """The name that an index built with this encoder records."""
    languages = frozenset({"en"})
    """The languages that the model reads, by ISO 639-1 code."""

    def __init__(self) -> None:
        folder = files("crag.models").joinpath(PACKAGED)
        card = ModelCard.model_validate_json(folder.joinpath(CARD).read_bytes())
        held = ModelFiles(folder, card.files, partial(ModelError, self.name))
        self._model = Model(held, MAX_LENGTH, whole_range=True)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        readable = (text[: MAX_LENGTH * _LONGEST_TOKEN] for text in texts)
        encodings = [self._model.encode(text) for text in readable]
        found = self._model.run([Input(part.ids, part.type_ids) for part in encodings])
        return [vector.tolist() for (vector,) in found]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_documents([text])[0]


@cache
def packaged_encoder() -> SentenceEncoder:
    """Return the default encoder; always the same object."""
    return SentenceEncoder()
