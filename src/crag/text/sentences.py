"""Where sentences end."""

from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled


def sentences_of(text: str) -> list[str]:
    """Cut `text` at sentence ends, blank pieces left out; white space is folded."""
    return [" ".join(piece.split()) for piece in split_sentences(text) if piece.strip()]


def split_sentences(text: str) -> list[str]:
    """Cut `text` at sentence ends; joined, the pieces are the text."""
    pieces: list[str] = list(segment("en", text))
    # A segmenter that lost characters must not lose them for our users.
    return pieces if "".join(pieces) == text else [text]
