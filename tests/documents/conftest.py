"""The fixtures of the index that tests of documents use as well."""

from tests.index.conftest import embeddings, folder, index, make_embeddings

__all__ = ["embeddings", "folder", "index", "make_embeddings"]
