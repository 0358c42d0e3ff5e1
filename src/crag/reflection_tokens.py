"""The reflection tokens: exact strings, groups, and their ids in a tokenizer (Self-RAG, Table 1).

The strings and their order are those of the released models; ids are always looked up.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal, Protocol

from crag.errors import ModelError

RETRIEVE = ("[No Retrieval]", "[Retrieval]", "[Continue to Use Evidence]")
NO_RETRIEVAL, RETRIEVAL, CONTINUE = RETRIEVE
RELEVANCE = ("[Irrelevant]", "[Relevant]")
IRRELEVANT, RELEVANT = RELEVANCE
PARAGRAPH = ("<paragraph>", "</paragraph>")
OPEN, CLOSE = PARAGRAPH
UTILITY = ("[Utility:1]", "[Utility:2]", "[Utility:3]", "[Utility:4]", "[Utility:5]")
SUPPORT = ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]")
FULLY, PARTIALLY, NO_SUPPORT = SUPPORT
PAD = "<pad>"
END = "</s>"

Group = Literal["retrieve", "relevance", "support", "utility"]
GROUPS: Mapping[Group, tuple[str, ...]] = {
    "retrieve": RETRIEVE,
    "relevance": RELEVANCE,
    "support": SUPPORT,
    "utility": UTILITY,
}
"""The tokens of each group whose probabilities are read."""
TOKENS = (*RETRIEVE, *RELEVANCE, *PARAGRAPH, *UTILITY, *SUPPORT)
"""All tokens that a reflecting model needs, in the order of the released vocabulary. `PAD`, which
follows them there, is not needed."""

_INVENTED = re.compile(rf"{re.escape(OPEN)}.*?(?:{re.escape(CLOSE)}|\Z)", re.DOTALL)
_ANY = re.compile("|".join(map(re.escape, (*TOKENS, PAD, END))))


class Tokenizer(Protocol):
    """The method needed of a tokenizer; those of transformers have it."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the ids of `text`."""
        ...


def token_ids(tokenizer: Tokenizer, *, required: bool = True) -> dict[str, int]:
    """Look up each of `TOKENS`; without `required`, those that the tokenizer lacks are absent.

    Raises:
        ModelError: a token is not a single id of its own; the message names all such tokens.
    """
    unknown = getattr(tokenizer, "unk_token_id", None)
    found = {token: list(tokenizer.encode(token, add_special_tokens=False)) for token in TOKENS}
    ids = {token: pieces[0] for token, pieces in found.items() if len(pieces) == 1}
    taken = list(ids.values())
    good = {token: i for token, i in ids.items() if i != unknown and taken.count(i) == 1}
    missing = [token for token in TOKENS if token not in good]
    if missing and required:
        name = str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)
        raise tokens_missing(name, missing)
    return good


def tokens_missing(model: str, missing: Collection[str]) -> ModelError:
    """Return the error for a model whose tokenizer lacks reflection tokens."""
    problem = (
        f"its tokenizer has no single id for {', '.join(missing)}; take a model that was "
        "trained with Self-RAG's tokens (such as selfrag/selfrag_llama2_7b), use prompted "
        "reflection, or set CRAG_REFLECTION_TOKENS=optional to run it with neutral critiques"
    )
    return ModelError(model, "unknown", problem)


def without_reflection(text: str) -> str:
    """Return a text that a model with the tokens wrote for a prompt of another kind.

    Tokens and passages that it made up are removed, with the white space that this leaves; a text
    without tokens stays as it is.
    """
    if _ANY.search(text) is None:
        return text
    return re.sub(r"[ \t]{2,}", " ", without_tokens(_INVENTED.sub("", text))).strip()


def without_tokens(text: str) -> str:
    """Delete every reflection token, the pad and the end token; nothing else changes.

    Text that deleting a token joins is not deleted again, even if it reads as a token.
    """
    return _ANY.sub("", text)
