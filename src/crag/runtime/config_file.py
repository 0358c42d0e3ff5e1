"""`crag.toml`: the variables of `Environment` in a file, for those who rather keep them there.

Each key is the name of a variable without ``CRAG_``, in lower case. Secrets are refused, because
such a file is committed and copied.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from crag.errors import ConfigurationError, did_you_mean
from crag.events import without_keys

NAME = "crag.toml"
"""Read in the folder where a command runs, unless CRAG_CONFIG names another file."""
EVALUATORS = (
    "default", "reader", "cosine", "chat-direct", "chat-chain-of-thought", "chat-few-shot",
    "chat-levels", "chat-batch",
)  # fmt: skip
"""Names of evaluators, which come before folders that are called so."""
REFLECTIONS = ("embedded", "prompted", "server")
"""Names of back ends of reflection, which do too."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "evaluator": EVALUATORS,
    "evaluator_fallback": EVALUATORS,
    "reranker": EVALUATORS,
    "reflection": REFLECTIONS,
}
_PLACES = frozenset({"index", "prompts"})
"""Values that are paths, unless they are URLs."""
_MAYBE_PLACES = frozenset(
    {"embedding_model", "evaluator", "evaluator_fallback", "reflection", "reranker"}
)
"""Values that are paths if there is such a file."""
PLACES = _PLACES | _MAYBE_PLACES
_SECRET = re.compile(r"(^|_)(key|token|password|secret)$", re.IGNORECASE)
_WITH_PASSWORD = re.compile(r"\w+://[^/@\s]*:[^/@\s]*@")


class ConfigFile(PydanticBaseSettingsSource):
    """The file as a source of settings that comes after the environment."""

    def get_field_value(
        self,
        field: FieldInfo,  # noqa: ARG002 - the signature of the base
        field_name: str,
    ) -> tuple[Any, str, bool]:
        """Return nothing: the file is read as a whole, when the source is called."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the values of the file that is named, or is here, with its absolute path."""
        named = self.current_state.get("config")
        path = Path(named or NAME).expanduser()
        if named is None and not path.is_file():
            return {}
        path = path.resolve()
        return {**read_config(path, self.settings_cls), "config": path}


def read_config(path: Path, form: type[BaseSettings]) -> dict[str, Any]:
    """Return the values of a file by the names that `form` takes; paths in it are relative to it.

    Raises:
        ConfigurationError: it cannot be read, holds an unknown key, a secret, or a wrong type.
    """
    try:
        given = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        problem = f"it cannot be read ({error.strerror}). CRAG_CONFIG names it"
        raise ConfigurationError(path, problem) from error
    except ValueError as error:
        raise ConfigurationError(path, f"it is no TOML: {error}") from error
    _check(path, given, form.model_fields)
    return {
        _taken(name, form.model_fields[name]): (
            placed(name, value, path.parent) if isinstance(value, str) else value
        )
        for name, value in given.items()
        if value != ""  # As in the environment, it says nothing.
    }


def variable_of(name: str, field: FieldInfo) -> str:
    """Return the environment variable of a field."""
    return _aliases(field)[0] if _aliases(field) else f"CRAG_{name.upper()}"


def _check(path: Path, given: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> None:
    open_names = [name for name in fields if name != "config" and not is_secret(fields[name])]
    for name, value in given.items():
        if name in fields and is_secret(fields[name]):
            raise _secret(path, name, variable_of(name, fields[name]))
        if name not in open_names:
            if _SECRET.search(name):
                raise _secret(path, name, name.upper())
            from crag.settings import Settings

            if name in Settings.model_fields:
                problem = (
                    f"{name} is a setting of a run, and this file has none: write --set {name}=… "
                    "on the command line, or give it in Python as one of the `settings`"
                )
                raise ConfigurationError(path, problem)
            raise ConfigurationError(
                path, f"unknown key {name!r}; {did_you_mean(name, open_names)}"
            )
        kind = bool if fields[name].annotation is bool else str
        if not isinstance(value, kind):
            wanted = "true or false" if kind is bool else "a text in quotes"
            raise ConfigurationError(path, f"{name} cannot be {value!r}: write {wanted}")
        if isinstance(value, str) and (
            _WITH_PASSWORD.search(value) or without_keys(value) != value
        ):
            raise _secret(path, name, variable_of(name, fields[name]))


def _secret(path: Path, name: str, variable: str) -> ConfigurationError:
    problem = (
        f"{name} holds a secret, and this file is no place for one: remove it, and set {variable} "
        "in the environment or in .env"
    )
    return ConfigurationError(path, problem)


def is_secret(field: FieldInfo) -> bool:
    """Return whether a field holds a secret."""
    return "SecretStr" in str(field.annotation)


def _aliases(field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices: Iterable[Any] = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [choice for choice in choices if isinstance(choice, str)]


def _taken(name: str, field: FieldInfo) -> str:
    """Return the name by which the form takes a field."""
    return next(iter(_aliases(field)), name)


def placed(name: str, value: str, folder: Path) -> str:
    """Make a relative path one of `folder`, because a server runs elsewhere."""
    called = value.strip().lower() if name == "reflection" else value  # As each is looked up.
    if name not in PLACES or called in _NAMES.get(name, ()):
        return value
    scheme, separator, rest = value.rpartition("://")
    if separator and not rest.startswith("."):  # ``./`` begins a folder, in any store.
        return value
    place = folder / Path(rest).expanduser()
    return f"{scheme}{separator}{place}" if name in _PLACES or place.exists() else value
