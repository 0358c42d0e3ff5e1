"""`crag doctor`: which parts are in use, what is missing, and how to fix it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from crag.cli import options
from crag.cli.terminal import environment, print_json, safe, say
from crag.errors import CragError, IndexNotFoundError

if TYPE_CHECKING:
    from crag.runtime.environment import Environment

SECONDS = 20.0
"""Longest time for a server; models that load here may take longer."""
_COLOURS = {"ready": "green", "missing": "yellow", "broken": "red"}
_QUESTION = "What is Corrective RAG?"
_PASSAGE = "Corrective RAG grades what was retrieved and corrects it."
_LIMIT = "raise the server's limit of tokens for a reply"


class PartStatus(NamedTuple):
    """One part: whether it works, what is in use, who chose it, and what to do if it fails."""

    part: str
    state: Literal["ready", "missing", "broken"]
    in_use: str
    why: str
    todo: str = ""


Check = tuple[str, str, str, bool, Callable[[], object]]
"""A part, what is in use, who chose it, whether a server is asked, and what uses it once. If that
returns a text, nobody has chosen the part, and the text says how to."""


def doctor(location: options.Index = None, as_json: options.Json = False) -> None:
    """Use each part once; show which are in use, what is missing, and how to fix it.

    Exits with 1 if a part is broken, or if there is no index.
    """
    parts = list(examine(environment(location)))
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


def examine(place: "Environment") -> Iterator[PartStatus]:
    """Yield for each part whether it works, and how to fix it.

    Addresses are shown without users, passwords and values of queries.
    """
    from crag.events import redact
    from crag.runtime.calls import within

    for part, in_use, why, is_served, use in _checks(place):
        state, todo = "ready", ""
        try:
            reply = within(SECONDS, use) if is_served else use()
            if isinstance(reply, str):
                state, todo = "missing", reply
        except Exception as error:  # noqa: BLE001 - of whatever kind a client raises
            name = "" if isinstance(error, CragError) else f"{type(error).__name__}: "
            is_unasked = part == "reflection" and place.reflection is None
            is_missing = is_unasked or isinstance(error, IndexNotFoundError)
            state, todo = "missing" if is_missing else "broken", f"{name}{error}"
            if isinstance(error, TimeoutError):
                todo = f"{error}: limit its replies at the server, or choose another with {why}"
        yield PartStatus(part, state, *map(redact, (in_use, why, todo)))  # type: ignore[arg-type]


def _checks(place: "Environment") -> Sequence[Check]:
    """Return how each part is chosen and used; what is left out stands for its default."""
    from crag.factory import parts
    from crag.factory.embeddings import choose_encoder
    from crag.generation.chat import DEFAULT_MODEL
    from crag.index import open_index
    from crag.models.encoder import DEFAULT_MODEL as ENCODER
    from crag.parts import Prefix

    def model() -> Any:
        with suppress(CragError):  # Which is told once, of the answers.
            return parts.choose_model(place)
        return None

    def reflection() -> None:
        if (chosen := parts.choose_reflection(place, model())) is not None:
            chosen.decide([Prefix(_QUESTION)])

    written = place.model or (place.openai_api_key and DEFAULT_MODEL)
    at = f" at {place.openai_base_url}" if place.openai_base_url else ""
    writes = f"{written}{at}" if written else "quotations, without a chat model"
    encoder, judge = place.embedding_model or ENCODER, place.evaluator
    reflects = place.reflection or ("prompted" if written else "embedded")
    return (
        ("embeddings", encoder, "CRAG_EMBEDDING_MODEL", ":" in encoder,
         lambda: choose_encoder(place).embed_query(_QUESTION)),
        ("index", place.index, "--index, CRAG_INDEX", False,
         lambda: open_index(place.index, choose_encoder(place)).open().search(_QUESTION, 1)),
        ("answers", writes, "CRAG_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY", True,
         lambda: _ask(parts.choose_model(place))),
        ("prompts", str(place.prompts or "packaged"), "CRAG_PROMPTS", False,
         lambda: parts.choose_prompts(place)),
        ("evaluator", judge, "CRAG_EVALUATOR", judge == "chat" or "://" in judge,
         lambda: parts.choose_evaluator(place, model()).score(_QUESTION, [_PASSAGE])),
        ("web search", place.service, "CRAG_SEARCH, or by its key or address", True,
         lambda: _search(parts.choose_searcher(place))),
        ("reflection", reflects, "CRAG_REFLECTION for --method self-rag and self-crag",
         reflects in {"prompted", "server"}, reflection),
    )  # fmt: skip


def _search(searcher: Any) -> object:
    from crag.parts import SEARCHER_HINT

    hint = f"{SEARCHER_HINT}, for a second source"
    return searcher.search(_QUESTION, 1) if searcher else hint


def _ask(model: Any) -> None:
    """Ask the chat model, if there is one, for a word.

    Raises:
        CragError: it fails, or its replies come cut off or empty.
    """
    if model is None:
        return
    from langchain_core.messages import HumanMessage

    from crag.answering.model_calls import ask

    reply = ask(model, [HumanMessage("Reply with one word: ready")])
    if reply.cut:
        raise CragError(f"every reply is cut off ({reply.cut}): {_LIMIT}")
    if reply.problem:
        advice = f": switch its thinking off, or {_LIMIT}" if reply.problem == "empty" else ""
        raise CragError(f"{reply.detail}{advice}")
