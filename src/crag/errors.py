"""The errors raised before a run, as one tree.

    CragError (RuntimeError)
    ├── QuestionError            no question, or one beyond the limit
    ├── SettingsError            a setting with a value outside its range
    ├── ConfigurationError       the file crag.toml
    ├── DocumentIndexError       the index of the user's documents
    │   ├── IndexNotFoundError
    │   ├── EmptyIndexError
    │   └── EmbeddingMismatchError
    ├── LoaderError              a loader named for files
    ├── SourceError              one file that cannot be indexed
    ├── ContentError             bytes that hold no text anybody can read
    ├── EncoderError             the sentence encoder cannot be loaded
    ├── EvaluatorError           the evaluator cannot be loaded
    ├── ReplyError               a part returned what its Protocol does not allow
    ├── PromptError              a prompt of the user's own that cannot be used
    ├── DataError                labelled data that cannot be used
    ├── TrainingError            training or calibration that cannot continue
    ├── SearchError              the web searcher
    ├── PageError                one web page that cannot be read
    ├── ModelError               the chat model
    └── MissingPackageError      an optional package that a part needs

The root is a `RuntimeError` because a LangGraph server only forwards messages of well-known
built-in types to its clients. Failures *during* a run are recorded instead: see `crag.events`.
`GoneError` is none of them: it ends a run of the server that nobody waits for any more.
"""

import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from crag.plain import without_credentials

SearchProblem = Literal["key", "quota", "timeout", "server", "request"]
PageProblem = Literal[
    "refused", "robots", "timeout", "too_large", "status", "content_type", "network", "unreadable",
    "empty", "budget",
]  # fmt: skip
"""Why a page has no paragraphs: refused by the guard, forbidden by robots.txt, too slow, too many
bytes, an HTTP status, an unsupported content type, no connection, damaged, without text, or not
tried because a budget was spent."""
ModelProblem = Literal["key", "unknown", "failed", "refused", "empty", "wordless"]


class CragError(RuntimeError):
    """The root; every message says what is wrong and how to fix it.

    Addresses in it are shown without users, passwords and the values of queries.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(without_credentials(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error be copied, and sent from one process to another, with its fields."""
        return _revived, (type(self), str(self), vars(self))


class QuestionError(CragError, ValueError):
    """The input holds no usable question; a server tells its clients what is wrong with a value."""


class SettingsError(CragError):
    """A setting is unknown or its value is out of range."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"setting {field!r} cannot be {value!r}: {allowed}")


class ConfigurationError(CragError):
    """The file that names the parts cannot be used."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: {problem}")


class DocumentIndexError(CragError):
    """The index of documents at `location` (a folder or a server's URL) cannot be used."""

    def __init__(self, location: str, problem: str) -> None:
        self.location = location
        super().__init__(f"index {location}: {problem}")


def _indexing(location: str) -> str:
    return f"crag index PATH… --index {shlex.quote(location)}"


class IndexNotFoundError(DocumentIndexError):
    """There is no index at the location."""

    def __init__(self, location: str) -> None:
        super().__init__(location, f"it does not exist. Build it with: {_indexing(location)}")


class EmptyIndexError(DocumentIndexError):
    """The index exists but is empty."""

    def __init__(self, location: str) -> None:
        super().__init__(location, f"it is empty. Fill it with: {_indexing(location)}")


class EmbeddingMismatchError(DocumentIndexError):
    """The index was built with another embedding model than the one in use."""

    def __init__(self, location: str, made_with: str, in_use: str) -> None:
        self.made_with, self.in_use = made_with, in_use
        super().__init__(
            location,
            f"it was built with the embedding model {made_with!r}, but {in_use!r} is in use. "
            "Set CRAG_EMBEDDING_MODEL to the former, choose another place with --index, or delete "
            "this one and index again",
        )


class LoaderError(CragError):
    """A loader that was named (`name`) cannot be used."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        super().__init__(f"loader {name!r}: {problem}")


class SourceError(CragError):
    """One source (a file, or one record of a file) cannot be indexed."""

    def __init__(self, source: str, problem: str) -> None:
        self.source, self.problem = source, problem
        super().__init__(f"{source}: {problem}")


class ContentError(CragError):
    """The bytes of a file or a web page cannot be read as a text; `problem` says why."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class EvaluatorError(CragError):
    """The evaluator cannot be loaded, or cannot be used as it is."""


class ReplyError(CragError):
    """A part of a graph (`part`) returned what its Protocol does not allow; `problem` says what."""

    def __init__(self, part: str, problem: str) -> None:
        self.part, self.problem = part, problem
        super().__init__(f"the {part} {problem}")


class DataError(CragError):
    """A file of labelled data cannot be used; `line` is set if one line is at fault."""

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        self.path, self.problem, self.line = path, problem, line
        super().__init__(f"{path}{f', line {line}' if line else ''}: {problem}")


class PromptError(CragError):
    """A prompt, or a folder of them, cannot be used; `line` is set if one line is at fault."""

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        self.path, self.problem, self.line = path, problem, line
        super().__init__(f"prompt {path}{f', line {line}' if line else ''}: {problem}")


class TrainingError(CragError):
    """An evaluator cannot be trained or calibrated; the message says what to change."""


class SearchError(CragError):
    """The web search failed; `problem` is the kind of failure, `message` says what to do."""

    def __init__(self, provider: str, problem: SearchProblem, message: str) -> None:
        self.provider, self.problem = provider, problem
        super().__init__(f"{provider}: {message}")


class PageError(CragError):
    """One web page cannot be read; `problem` is the kind of failure."""

    def __init__(self, url: str, problem: PageProblem, message: str) -> None:
        self.url, self.message = url, message
        self.problem: PageProblem = problem
        super().__init__(f"{url}: {message}")


class ModelError(CragError):
    """The chat model or its reply cannot be used."""

    def __init__(self, model: str, problem: ModelProblem, message: str) -> None:
        self.model, self.problem = model, problem
        super().__init__(f"model {model}: {message}")


class EncoderError(CragError):
    """The sentence encoder `model` cannot be loaded, or its server fails."""

    def __init__(self, model: str, problem: str) -> None:
        self.model = model
        super().__init__(f"sentence encoder {model}: {problem}")


class MissingPackageError(CragError):
    """A part needs a package that is not installed."""

    def __init__(self, package: str, purpose: str, advice: str | None = None) -> None:
        self.package = package
        advice = advice or f"Run: pip install {shlex.quote(package)}"
        super().__init__(f"{purpose} needs the package {package!r}. {advice}")


def _revived(kind: type[CragError], message: str, fields: Mapping[str, Any]) -> CragError:
    """Make an error of its message and fields; `__init__` makes the message of other arguments."""
    error = kind.__new__(kind, message)
    vars(error).update(fields)
    return error


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the known names that are spelled like `name`, or all of them if none is."""
    names, name = {one.lower(): one for one in known}, name.lower()
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    near += [one for one in names if one not in near and name and name in one.split("_")]
    meant = " or ".join(names[one] for one in near)
    return f"did you mean {meant}?" if near else f"known are {', '.join(names.values())}"


class GoneError(Exception):
    """What a run was to read or write is nobody's, or somebody else's, by now.

    Its thread was deleted or another process took it up, so nobody waits for it here any more.
    """
