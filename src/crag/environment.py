"""What the environment (and a `.env` file) says about parts: names, places and keys."""

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_INDEX = ".crag/index"


class Environment(BaseSettings):
    """Variables that choose the parts; keys are never shown, stored or logged."""

    model_config = SettingsConfigDict(
        env_prefix="CRAG_", env_file=".env", extra="ignore", env_ignore_empty=True, frozen=True
    )

    index: str = DEFAULT_INDEX
    """CRAG_INDEX: folder of the index, or URL of a Chroma server."""
    evaluator: str = "default"
    """CRAG_EVALUATOR: name of the evaluator, or the folder of one."""
    embedding_model: str | None = None
    """CRAG_EMBEDDING_MODEL: path or hub id of a sentence encoder; unset, the packaged one."""
    model: str | None = None
    """CRAG_MODEL: name of the chat model; unset, a default one if there is a key."""
    openai_base_url: str | None = Field(
        default=None, validation_alias=AliasChoices("OPENAI_BASE_URL", "OPENAI_API_BASE")
    )
    """OPENAI_BASE_URL: an OpenAI-compatible server, such as vLLM, Ollama or llama.cpp."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    tavily_api_key: SecretStr | None = Field(default=None, validation_alias="TAVILY_API_KEY")
