"""Choose what reads and embeds documents: all that `crag index` needs of the factory."""

from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from crag.factory.embeddings import load_embeddings
from crag.models.encoder import packaged_encoder
from crag.runtime.environment import Environment

if TYPE_CHECKING:
    from crag.index import Limits


def choose_encoder(environment: Environment) -> Embeddings:
    """Return the embedding model; weights load on first use.

    Raises:
        CragError: the named model lacks a key or a package.
    """
    name, key = environment.embedding_model, environment.openai_api_key
    if not name:
        return packaged_encoder()
    return load_embeddings(
        name,
        base_url=environment.openai_base_url,
        api_key=key.get_secret_value() if key else None,
    )


def choose_limits(environment: Environment) -> "Limits":
    """Return what reading one file may take."""
    from crag.index import Limits  # With the loaders, which no question needs.

    return Limits(environment.read_seconds, environment.read_megabytes)
