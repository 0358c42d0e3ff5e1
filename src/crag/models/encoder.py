"""The sentence encoder: texts to vectors, on this machine."""

from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from langchain_core.embeddings import Embeddings

from crag.errors import EncoderError
from crag.models.model import Input, Model, ModelFiles
from crag.models.model_card import CARD, ModelCard
from crag.plain import first_line

DEFAULT_MODEL = "crag-minilm-l6-v2"
"""all-MiniLM-L6-v2, taught to find the section that answers a question; what an index records."""
PACKAGED = "crag_minilm_l6_v2"
"""The folder of the packaged encoder, beside this file."""
MAX_LENGTH = 256
"""Tokens of a text that are read, with the special ones."""
_LONGEST_TOKEN = 100
"""Characters: a longer word is one unknown token."""


class SentenceEncoder(Embeddings):
    """Embed with crag's own model, or with one of its form in `folder`.

    It loads on first use, which several threads may share. Vectors have 384 numbers and length 1.

    Raises:
        EncoderError: the folder is not that of an encoder; on first use, if a file of it is missing
            or damaged.
    """

    languages = frozenset({"en"})
    """The languages that the model reads, by ISO 639-1 code."""

    def __init__(self, folder: Path | None = None) -> None:
        self.name = str(folder.resolve()) if folder else DEFAULT_MODEL
        """The name that an index built with this encoder records."""
        place: Traversable = files("crag.models").joinpath(PACKAGED)
        if folder:
            place = folder.resolve()
        refused = partial(EncoderError, self.name)
        try:
            card = ModelCard.model_validate_json(place.joinpath(CARD).read_bytes())
        except (OSError, ValueError) as error:
            raise refused(f"its {CARD} cannot be used ({first_line(error)})") from error
        if card.kind != "encoder":
            raise refused(f"it is a {card.kind}, which makes no vectors")
        self._files = ModelFiles(place, card.files, refused)
        self._model = Model(self._files, MAX_LENGTH)

    def verify(self) -> None:
        """Check the model files without loading the model.

        Raises:
            EncoderError: one is damaged or missing.
        """
        self._files.verify()

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
