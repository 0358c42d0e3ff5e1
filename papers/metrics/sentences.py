"""Split answers into sentences: by rules that need no data, or as the official script does."""

from collections.abc import Callable

Splitter = Callable[[str], list[str]]


def sentences(text: str) -> list[str]:
    """Return the sentences of an English text, without surrounding space."""
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

    return [piece.strip() for piece in segment("en", text) if piece.strip()]


def nltk_sentences(text: str) -> list[str]:
    """Return sentences as ALCE's script does.

    Raises:
        MissingPackageError: NLTK is missing.
        LookupError: its model is not installed; NLTK's message says how to download it.
    """
    from crag.errors import MissingPackageError

    try:
        from nltk import sent_tokenize
    except ImportError as error:
        raise MissingPackageError("nltk", "cutting sentences as the official script does") from (
            error
        )
    return [str(one) for one in sent_tokenize(text)]
