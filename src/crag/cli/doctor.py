"""`crag doctor`: which parts are in use, what is missing, and how to fix it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from crag.cli.app import app, examples
from crag.cli.options import IndexOption, JsonOption
from crag.cli.terminal import environment, print_json, safe, say
from crag.errors import CragError, IndexNotFoundError

if TYPE_CHECKING:
    from crag.runtime.environment import Environment

_COLOURS = {"ready": "green", "missing": "yellow", "broken": "red"}
_QUESTION = "What is Corrective RAG?"
_PASSAGE = "Corrective RAG grades what was retrieved and corrects it."
_LIMIT = "raise the server's limit of tokens for a reply"
_SILENT = "switch its thinking off, or raise the server's limit of tokens for a reply"
_QUOTES = "set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL, for written answers"


class PartStatus(NamedTuple):
    """One part: whether it works, what is in use, who chose it, and what to do if it fails."""

    part: str
    state: Literal["ready", "missing", "broken"]
    in_use: str
    why: str
    todo: str = ""


Check = tuple[str, str, str, Callable[[], Any], Callable[[Any], object]]
"""A part, what is in use, who chose it, and how it is chosen and used."""


@app.command(epilog=examples("crag doctor", "crag doctor --quick --json"))
def doctor(
    location: IndexOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only name the parts: load nothing, ask no server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Use each part once; show which are in use, what is missing, and how to fix it.

    Exits with 1 if a part is broken, or if there is no index.
    """
    parts = list(examine(environment(location), use=not quick))
    if as_json:
        print_json([part._asdict() for part in parts])
    else:
        for part in parts:
            state = f"[{_COLOURS[part.state]}]{part.state:<8}[/]"
            say(f"{part.part:<14}{state} {safe(f'{part.in_use} ({part.why})')}")
            if part.todo:
                say(f"  [dim]→ {safe(part.todo)}[/]")
    failed = any(part.state == "broken" or part[:2] == ("index", "missing") for part in parts)
    raise typer.Exit(int(failed))


def examine(place: "Environment", *, use: bool = True) -> Iterator[PartStatus]:
    """Yield for each part whether it is ready, and how to fix it.

    With `use` off nothing is loaded or sent, and "ready" only says that a part is configured.
    Addresses are shown without users, passwords and values of queries.
    """
    from crag.events import redact
    from crag.factory.parts import SEARCHER_HINT

    for part, in_use, why, choose, used in _checks(place):
        state, named, todo = "ready", in_use, ""
        try:
            chosen = choose()
            if hasattr(chosen, "verify"):  # A model in a folder: are its files there?
                chosen.verify()
            if use and chosen is not None:
                used(chosen)
            if chosen is None and part == "web search":
                state, named, todo = "missing", "none", f"{SEARCHER_HINT}, for a second source"
            elif chosen is None and part == "answers":
                named, todo = "quotations, without a chat model", _QUOTES
        except IndexNotFoundError as error:
            state, todo = "missing", str(error)
        except Exception as error:  # noqa: BLE001 - of whatever kind a client raises
            name = "" if isinstance(error, CragError) else f"{type(error).__name__}: "
            is_unasked = part == "reflection" and place.reflection is None
            state, todo = "missing" if is_unasked else "broken", f"{name}{error}"
        yield PartStatus(part, state, *map(redact, (named, why, todo)))  # type: ignore[arg-type]


def _checks(place: "Environment") -> Iterator[Check]:
    """Yield how each part is chosen and used; what is left out stands for its default."""
    from crag.factory import parts
    from crag.factory.embeddings import choose_encoder
    from crag.generation import ExtractiveAnswerer
    from crag.generation.chat import DEFAULT_MODEL
    from crag.index import DocumentIndex
    from crag.models.encoder import DEFAULT_MODEL as ENCODER
    from crag.parts import Prefix

    def model() -> Any:
        with suppress(CragError):  # Which is told once, of the answers.
            return parts.choose_model(place)
        return None

    def evaluator() -> Any:
        return parts.choose_evaluator(place, model())

    def reflection() -> Any:
        quoter = ExtractiveAnswerer(evaluator())
        return parts.choose_reflection(place, evaluator(), quoter, model())

    if place.config is not None:
        yield "configuration", str(place.config), "CRAG_CONFIG", lambda: None, id
    yield (
        "embeddings", place.embedding_model or ENCODER, "CRAG_EMBEDDING_MODEL",
        lambda: choose_encoder(place), lambda encoder: encoder.embed_query(_QUESTION),
    )  # fmt: skip
    yield (
        "index", place.index, "--index, CRAG_INDEX",
        lambda: DocumentIndex(place.index, choose_encoder(place)).open(),
        lambda index: index.search(_QUESTION, 1),
    )  # fmt: skip
    yield (
        "answers", place.model or DEFAULT_MODEL, place.openai_base_url or "CRAG_MODEL",
        lambda: parts.choose_model(place), _asked,
    )  # fmt: skip
    prompts = str(place.prompts or "packaged")
    yield "prompts", prompts, "CRAG_PROMPTS", lambda: parts.choose_prompts(place), id
    yield (
        "evaluator", place.evaluator, "CRAG_EVALUATOR",
        evaluator, lambda one: one.score(_QUESTION, [_PASSAGE]),
    )  # fmt: skip
    yield (
        "web search", place.search or "by its key or address", "CRAG_SEARCH",
        lambda: parts.choose_searcher(place), lambda one: one.search(_QUESTION, 1),
    )  # fmt: skip
    yield (
        "reflection", place.reflection or "prompted, or embedded without a model",
        "CRAG_REFLECTION, for --method self-rag and self-crag",
        reflection, lambda one: one.decide([Prefix(_QUESTION)]),
    )  # fmt: skip


def _asked(model: Any) -> None:
    """Ask a chat model for a word.

    Raises:
        CragError: it fails, or its replies come cut off or empty.
    """
    from langchain_core.messages import HumanMessage

    from crag.answering.model_calls import ask

    reply = ask(model, [HumanMessage("Reply with one word: ready")])
    if reply.cut:
        raise CragError(f"every reply is cut off ({reply.cut}): {_LIMIT}")
    if reply.problem:
        detail = f"{reply.detail}: {_SILENT}" if reply.problem == "empty" else str(reply.detail)
        raise CragError(detail)
