"""The errors raised before a run, as one tree.

    CragError (RuntimeError)
    ├── QuestionError            no question, or one beyond the limit
    ├── SettingsError            a setting with a value outside its range
    ├── DataError                a file of the user's, such as a prompt
    ├── DocumentIndexError       the index; IndexNotFoundError: there is none
    ├── SourceError              one file that cannot be indexed
    ├── ContentError             bytes that hold no text anybody can read
    ├── EvaluatorError           an evaluator that cannot be used
    ├── SearchError, PageError, ModelError    the web searcher, one web page, a model
    └── MissingPackageError      an optional package that a part needs

The root is a `RuntimeError` because a LangGraph server only forwards messages of well-known
built-in types to its clients. Failures *during* a run are recorded instead: see `crag.events`.
"""

import shlex
from collections.abc import Iterable
from copyreg import __newobj__  # type: ignore[attr-defined]
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Literal

from crag.plain import without_credentials

SearchProblem = Literal["key", "quota", "timeout", "server", "request"]
PageProblem = Literal[
    "refused", "robots", "timeout", "too_large", "status", "content_type", "network", "unreadable",
    "empty", "budget",
]  # fmt: skip
"""Why a page has no paragraphs; `refused` by the guard, or not tried as a `budget` was spent."""
ModelProblem = Literal["key", "unknown", "failed", "refused", "empty"]


class CragError(RuntimeError):
    """The root; every message says what is wrong and how to fix it.

    Addresses in it are shown without users, passwords and the values of queries.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(without_credentials(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let an error be copied, and sent from one process to another, with its fields."""
        return __newobj__, (type(self), *self.args), vars(self)


class QuestionError(CragError, ValueError):
    """The input holds no usable question; a server tells its clients what is wrong with a value."""


class EvaluatorError(CragError):
    """The evaluator cannot be loaded, or cannot be used as it is."""


class SettingsError(CragError):
    """A setting is unknown or its value is out of range."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"setting {field!r} cannot be {value!r}: {allowed}")


class _NamedError(CragError):
    """An error of something that has a name.

    `message` says what is wrong and what to do; where there are both, `problem` is its kind.
    """

    kind: ClassVar[str] = ""

    def __init__(self, name: object, problem: Any, message: str = "") -> None:
        self.name, self.problem, self.message = name, problem, message or problem
        super().__init__(f"{self.kind}{name}: {self.message}")


class SourceError(_NamedError):
    """One source (a file, or one record of a file) cannot be indexed."""


class DocumentIndexError(_NamedError):
    """The index of documents at a location (a folder or a server's URL) cannot be used."""

    kind = "index "


class IndexNotFoundError(DocumentIndexError):
    """There is no index at the location, or nothing in it."""

    def __init__(self, location: str, problem: str = "it does not exist") -> None:
        command = f"crag index PATH… --index {shlex.quote(location)}"
        super().__init__(location, f"{problem}. Build it with: {command}")


class DataError(CragError):
    """A file of the user's cannot be used: crag.toml, questions, labelled data.

    `line` is set if one line is at fault.
    """

    def __init__(self, path: Path, problem: str, line: int | None = None) -> None:
        self.path, self.problem, self.line = path, problem, line
        super().__init__(f"{path}{f', line {line}' if line else ''}: {problem}")


class ContentError(CragError):
    """The bytes of a file or a web page cannot be read as a text; `problem` says why."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


class SearchError(_NamedError):
    """The web search failed, by a `SearchProblem`."""


class PageError(_NamedError):
    """One web page cannot be read, by a `PageProblem`."""


class ModelError(_NamedError):
    """A model or its reply cannot be used, by a `ModelProblem` or in words."""

    kind = "model "


class MissingPackageError(CragError):
    """A part needs a package that is not installed."""

    def __init__(self, package: str, purpose: str, advice: str = "") -> None:
        self.package = package
        advice = advice or f"Run: pip install {shlex.quote(package)}"
        super().__init__(f"{purpose} needs the package {package!r}. {advice}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the known names that are spelled like `name`, or all of them if none is."""
    names = {one.lower(): one for one in known}
    near = get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    meant = " or ".join(names[one] for one in near)
    return f"did you mean {meant}?" if near else f"known are {', '.join(names.values())}"
