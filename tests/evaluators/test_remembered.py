"""Vectors are computed once, and forgotten beyond the bound."""

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.evaluators.remembered import RememberedVectors


class Counting(Embeddings):
    """Embeds a text by its length; zero for an empty one."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_each_text_is_embedded_once_and_in_order() -> None:
    embeddings = Counting()
    vectors = RememberedVectors(embeddings)
    first, second, again = vectors.of(["a", "bb", "a"])
    assert np.allclose(first, [0.6, 0.8])
    assert np.array_equal(first, again)
    assert len(vectors.of(["bb", "ccc"])) == 2
    assert embeddings.asked == [["a", "bb"], ["ccc"]]
    assert np.allclose(second, [0.6, 0.8])


def test_the_oldest_go_beyond_the_bound() -> None:
    embeddings = Counting()
    vectors = RememberedVectors(embeddings, most=2)
    vectors.of(["a", "bb"])
    vectors.of(["a", "ccc"])
    vectors.of(["a"])
    vectors.of(["bb"])
    assert embeddings.asked == [["a", "bb"], ["ccc"], ["bb"]]


def test_a_vector_of_zeros_stays_one() -> None:
    assert np.allclose(RememberedVectors(Counting()).of([""])[0], [0, 0])
