"""What chooses the parts: environment variables, a `.env` file, and `crag.toml`.

An option of a command comes first, then the environment, `.env`, `crag.toml`, and the default.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from pydantic import (
    AliasChoices,
    Field,
    ModelWrapValidatorHandler,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from crag.errors import ConfigurationError, SettingsError
from crag.plain import allowed_by
from crag.runtime.config_file import PLACES, ConfigFile, is_secret, placed, variable_of

DEFAULT_INDEX = ".crag/index"
_LONGEST_SECONDS = {"evaluator_seconds": 600, "read_seconds": 86_400}
_FEWEST_MEGABYTES = 200
"""What the process that reads files takes before it reads one, and some more."""
_SWITCH = {"true": True, "yes": True, "on": True, "1": True}
_SWITCH |= {"false": False, "no": False, "off": False, "0": False}


Shared = tuple[tuple[str, object], ...]
"""Names and values of the fields of an `Environment`; it can be hashed, and sent."""


class Environment(BaseSettings):
    """Variables that choose the parts; keys are never shown, stored or logged."""

    model_config = SettingsConfigDict(
        env_prefix="CRAG_", env_file=".env", extra="ignore", env_ignore_empty=True, frozen=True
    )

    config: Path | None = None
    """CRAG_CONFIG: a TOML file of these variables, without secrets; unset, `crag.toml` here."""
    index: str = DEFAULT_INDEX
    """CRAG_INDEX: folder of the index, or the address of another store (`crag index --help`)."""
    evaluator: str = "default"
    """CRAG_EVALUATOR: name of the evaluator, the folder of one, or the URL of a service."""
    evaluator_fallback: str | None = None
    """CRAG_EVALUATOR_FALLBACK: evaluator that judges where the other one fails, such as default;
    unset, texts that could not be judged score -1."""
    evaluator_seconds: float = 10.0
    """CRAG_EVALUATOR_SECONDS: longest time that a request to an evaluator service may take."""
    evaluator_token: SecretStr | None = None
    """CRAG_EVALUATOR_TOKEN: what an evaluator service asks for, and `crag serve-evaluator` too."""
    reranker: str | None = None
    """CRAG_RERANKER: evaluator whose scores order what was found before it is graded, by name or
    folder, or a name that a package adds; unset, the order of the index stays."""
    embedding_model: str | None = None
    """CRAG_EMBEDDING_MODEL: path or hub id of a sentence encoder, or provider:model, such as
    openai:NAME; unset, crag's own."""
    model: str | None = None
    """CRAG_MODEL: name of the chat model; unset, a default one if there is a key."""
    openai_base_url: str | None = Field(
        default=None, validation_alias=AliasChoices("OPENAI_BASE_URL", "OPENAI_API_BASE")
    )
    """OPENAI_BASE_URL: an OpenAI-compatible server, such as vLLM, Ollama or llama.cpp."""
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")

    framing: str = "chat"
    """CRAG_FRAMING: chat, or raw for a base model: its server completes the prompt as one string,
    at /v1/completions and without a chat template."""
    prompts: Path | None = None
    """CRAG_PROMPTS: folder of prompts in place of the packaged ones: one Markdown file each."""

    reflection: str | None = None
    """CRAG_REFLECTION: the back end of Self-RAG and Self-CRAG: embedded, prompted, server, or the
    folder or hub name of a model with reflection tokens. Unset, the chat model if there is one."""
    reflection_model: str = "selfrag/selfrag_llama2_7b"
    """CRAG_REFLECTION_MODEL: the model's name on the server."""
    reflection_tokens: str = "required"
    """CRAG_REFLECTION_TOKENS: required, or optional to run a model without reflection tokens too,
    with neutral critiques, as the papers' LLaMA2-hf-7b rows."""
    reflection_url: str | None = None
    """CRAG_REFLECTION_URL: address of a completions server; unset, that of OPENAI_BASE_URL."""
    reflection_device: str | None = None
    """CRAG_REFLECTION_DEVICE: such as cuda:0; unset, CUDA if available."""
    reflection_dtype: str = "auto"
    """CRAG_REFLECTION_DTYPE: auto, float32, bfloat16 or float16."""

    search: str | None = None
    """CRAG_SEARCH: tavily, wikipedia, searxng, none, or module:function of your own; unset, the
    service that has a key or an address."""
    tavily_api_key: SecretStr | None = Field(default=None, validation_alias="TAVILY_API_KEY")
    tavily_base_url: str | None = Field(
        default=None, validation_alias=AliasChoices("TAVILY_BASE_URL", "CRAG_TAVILY_URL")
    )
    """TAVILY_BASE_URL: another address of Tavily, such as a gateway; it receives the key."""
    searxng_url: str | None = Field(
        default=None, validation_alias=AliasChoices("SEARXNG_URL", "CRAG_SEARXNG_URL")
    )
    """SEARXNG_URL: a SearXNG server that replies in JSON."""
    wikipedia_url: str | None = None
    """CRAG_WIKIPEDIA_URL: another MediaWiki, or its api.php."""
    wikipedia_language: str = "en"
    """CRAG_WIKIPEDIA_LANGUAGE: code of the Wikipedia to search."""
    contact: str = ""
    """CRAG_CONTACT: e-mail address or URL at which Wikimedia can contact you; sent to the wiki."""
    telemetry: str = "auto"
    """CRAG_TELEMETRY: on, off, or auto: on if a variable OTEL_EXPORTER_OTLP_*ENDPOINT is set."""
    logs: str = "text"
    """CRAG_LOGS: text, or json: one object a line, without texts and keys."""
    read_seconds: float = 60.0
    """CRAG_READ_SECONDS: longest time that reading one file may take; it is skipped after that."""
    read_megabytes: int = 1500
    """CRAG_READ_MEGABYTES: memory that reading one file may take, on Linux."""
    allow_loopback: bool = False
    """CRAG_ALLOW_LOOPBACK: read pages of this machine too, for tests and local sites."""

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
        return init_settings, env_settings, dotenv_settings, ConfigFile(settings_cls)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            problem = f"line {line} is not UTF-8: save the file as UTF-8"
            raise ConfigurationError(Path(".env"), problem) from None

    @property
    def key(self) -> str | None:
        """The key of OpenAI, or of the server at `openai_base_url`."""
        return self.openai_api_key.get_secret_value() if self.openai_api_key else None

    def shared(self) -> "Shared":
        """Return what another process on Ray is told: all but secrets, with absolute paths."""
        told = {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if not is_secret(field)
        }
        for name, place in self.places().items():
            told[name] = type(told[name])(place)
        return tuple(told.items())

    def places(self) -> dict[str, str]:
        """Return what may be a path, absolute if it is one: for a process of another folder."""
        here = Path.cwd()
        values = {name: getattr(self, name) for name in sorted(PLACES)}
        return {name: placed(name, str(value), here) for name, value in values.items() if value}

    @classmethod
    def of(cls, shared: "Shared") -> Self:
        """Return the environment of another process, with the secrets of this one."""
        return cls().model_copy(update=dict(shared))

    @field_validator("config")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value.expanduser().resolve() if value else None

    @field_validator(*sorted(PLACES), mode="before")
    @classmethod
    def _at_home(cls, value: object) -> object:
        """Expand ``~``, which no shell does in `.env`."""
        return str(Path(str(value)).expanduser()) if str(value).startswith("~/") else value

    @field_validator("evaluator_seconds", "read_seconds", mode="before")
    @classmethod
    def _positive(cls, value: object, info: ValidationInfo) -> float:
        name = str(info.field_name)
        with suppress(ValueError):
            if 0 < (seconds := float(str(value))) <= _LONGEST_SECONDS[name]:
                return seconds
        allowed = f"allowed are seconds above 0, at most {_LONGEST_SECONDS[name]}"
        raise SettingsError(f"CRAG_{name.upper()}", value, allowed)

    @field_validator("read_megabytes", mode="before")
    @classmethod
    def _enough(cls, value: object) -> int:
        if not str(value).isdecimal() or int(str(value)) < _FEWEST_MEGABYTES:
            allowed = f"allowed are whole numbers from {_FEWEST_MEGABYTES}"
            raise SettingsError("CRAG_READ_MEGABYTES", value, allowed)
        return int(str(value))

    @field_validator("allow_loopback", mode="before")
    @classmethod
    def _switch(cls, value: object) -> bool:
        switched = value if isinstance(value, bool) else _SWITCH.get(str(value).strip().lower())
        if switched is None:
            raise SettingsError("CRAG_ALLOW_LOOPBACK", value, "allowed are true and false")
        return switched

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Say in words for users which variable is wrong, where a field has only bounds."""
        try:
            return validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            field = cls.model_fields.get(name)
            variable = name if field is None else variable_of(name, field)
            raise SettingsError(variable, first["input"], allowed_by(first)) from None
