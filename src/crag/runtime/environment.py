"""What chooses the parts: environment variables, a `.env` file, and `crag.toml`.

An option of a command comes first, then the environment, `.env`, `crag.toml`, and the default. Each
key of the file is the name of a variable without ``CRAG_``, in lower case. Secrets are refused in
it, because such a file is committed and copied.
"""

from functools import partial
from os.path import expanduser
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from crag.errors import DataError, SettingsError, did_you_mean
from crag.events import redact
from crag.plain import first_problem, real_path

DEFAULT_INDEX = ".crag/index"
_KEYS = "keys and passwords belong in the environment or in .env"
Home = Annotated[str, AfterValidator(expanduser)]
"""Perhaps a path below ``~``, which no shell expands in `.env`."""


class Variables(BaseSettings):
    """Variables with a prefix; of a wrong one its name, value and what is allowed are told."""

    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", env_ignore_empty=True, frozen=True
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except UnicodeDecodeError as error:
            raise DataError(Path(".env"), f"save it as UTF-8: {error}") from None

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Say in words for users which variable is wrong."""
        try:
            return validate(given)
        except ValidationError as error:
            name, value, problem = first_problem(error)
            prefix = cls.model_config["env_prefix"] if name in cls.model_fields else ""
            raise SettingsError(f"{prefix}{name.upper()}", value, problem) from None


class Environment(Variables, env_prefix="CRAG_", populate_by_name=True, str_strip_whitespace=True):
    """Variables that choose the parts; keys are never shown, stored or logged."""

    index: Home = DEFAULT_INDEX
    """CRAG_INDEX: folder of the index, or the address of another store (`crag index --help`)."""
    evaluator: Home = "default"
    """CRAG_EVALUATOR: name of the evaluator, module:attribute of your own, a folder, or the
    address of a rerank API."""
    evaluator_token: SecretStr | None = None
    """CRAG_EVALUATOR_TOKEN: what a rerank API asks for."""
    embedding_model: str | None = None
    """CRAG_EMBEDDING_MODEL: provider:model, such as openai:NAME, or module:attribute; unset,
    crag's own."""
    model: str | None = None
    """CRAG_MODEL: name of the chat model; unset, a default one if there is a key."""
    openai_base_url: str | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    """OPENAI_BASE_URL: an OpenAI-compatible server, such as vLLM, Ollama or llama.cpp."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")

    prompts: Annotated[Path, AfterValidator(real_path)] | None = None
    """CRAG_PROMPTS: folder of prompts in place of the packaged ones: one Markdown file each."""

    reflection: Home | None = None
    """CRAG_REFLECTION: the back end of Self-RAG and Self-CRAG: embedded, prompted, server, or the
    folder or hub name of a model with reflection tokens. Unset, the chat model if there is one."""
    reflection_model: str = "selfrag/selfrag_llama2_7b"
    """CRAG_REFLECTION_MODEL: the model's name on the server."""
    reflection_tokens: Literal["required", "optional"] = "required"
    """CRAG_REFLECTION_TOKENS: required, or optional to run a model without reflection tokens too,
    with neutral critiques, as the papers' LLaMA2-hf-7b rows."""
    reflection_url: str | None = None
    """CRAG_REFLECTION_URL: address of a completions server; unset, that of OPENAI_BASE_URL."""

    search: str | None = None
    """CRAG_SEARCH: tavily, wikipedia, searxng, none, or module:function of your own; unset, the
    service that has a key or an address."""
    tavily_api_key: SecretStr | None = Field(default=None, validation_alias="TAVILY_API_KEY")
    tavily_base_url: AnyHttpUrl | None = Field(default=None, validation_alias="TAVILY_BASE_URL")
    """TAVILY_BASE_URL: another address of Tavily, such as a gateway; it receives the key."""
    searxng_url: AnyHttpUrl | None = Field(default=None, validation_alias="SEARXNG_URL")
    """SEARXNG_URL: a SearXNG server that replies in JSON."""
    wikipedia_url: AnyHttpUrl = AnyHttpUrl("https://en.wikipedia.org")
    """CRAG_WIKIPEDIA_URL: the Wikipedia of a language, another MediaWiki, or its api.php."""
    contact: str = Field(default="", pattern=r"^[ -~]*$")
    """CRAG_CONTACT: e-mail address or URL at which Wikimedia can contact you; sent to the wiki."""
    read_seconds: float = Field(default=60.0, gt=0, le=86_400)
    """CRAG_READ_SECONDS: longest time that reading one file may take; it is skipped after that."""
    read_megabytes: int = Field(default=1500, ge=200)
    """CRAG_READ_MEGABYTES: memory that reading one file may take, on Linux. The process that reads
    takes nearly 200 before it reads one."""
    allow_loopback: bool = False
    """CRAG_ALLOW_LOOPBACK: read pages of this machine too, for tests and local sites."""

    @property
    def key(self) -> str | None:
        """The key of OpenAI, or of the server at `openai_base_url`."""
        return self.openai_api_key.get_secret_value() if self.openai_api_key else None

    @property
    def service(self) -> str:
        """What searches the web: what is named, or else what has a key or an address."""
        chosen = "tavily" if self.tavily_api_key else "searxng" if self.searxng_url else "none"
        return self.search or chosen

    @property
    def beside(self) -> str:
        """Beside which folder files of this machine lie: that of the index, or its default."""
        return DEFAULT_INDEX if "://" in self.index else self.index

    def __reduce__(self) -> tuple[Any, ...]:
        """Let another process have it but for the secrets, which it reads in its own."""
        shared = self.model_dump(mode="json", exclude=set(_secrets()))
        return partial(Environment, **shared), ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the base class passes it
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return what is read, the strongest first."""
        return init_settings, env_settings, dotenv_settings, _File(settings_cls, "crag.toml")


class _File(TomlConfigSettingsSource):
    """`crag.toml`.

    Raises:
        DataError: it cannot be read, or has an unknown key or a secret.
    """

    def _read_file(self, file_path: Path) -> dict[str, Any]:  # type: ignore[override]
        try:
            given = super()._read_file(file_path)
        except ValueError as error:
            raise DataError(file_path, f"it is no TOML: {error}") from error
        known = Environment.model_fields.keys() - set(_secrets())
        for name, value in given.items():
            if redact(str(value)) != str(value):
                raise DataError(file_path, f"{name} holds a secret: {_KEYS}")
            if name not in known:
                near = did_you_mean(name, sorted(known))
                raise DataError(file_path, f"unknown key {name!r}; {near}. {_KEYS.capitalize()}")
        return given


def _secrets() -> list[str]:
    fields = Environment.model_fields
    return [name for name, field in fields.items() if "SecretStr" in str(field.annotation)]
