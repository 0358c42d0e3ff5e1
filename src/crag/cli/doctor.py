"""`crag doctor`: which parts are in use, what is missing, and how to fix it."""

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from crag.cli.app import app, examples
from crag.cli.options import IndexOption, JsonOption
from crag.cli.terminal import environment, print_json, print_table, safe
from crag.errors import CragError, EmptyIndexError, IndexNotFoundError

if TYPE_CHECKING:
    from crag.runtime.environment import Environment

State = Literal["ready", "missing", "broken"]
_MARKS = {
    "ready": "[green]ready[/]", "missing": "[yellow]missing[/]", "broken": "[red]broken[/]",
}  # fmt: skip
_QUESTION = "What is Corrective RAG?"
_PASSAGE = "Corrective RAG grades what was retrieved and corrects it."
_NEEDED = {"installation", "embeddings", "index", "evaluator", "answers"}


class PartStatus(NamedTuple):
    """One part: whether it works, what is in use and why, and what to do if it does not work."""

    part: str
    state: State
    in_use: str
    why: str
    todo: str = ""


@app.command(epilog=examples("crag doctor", "crag doctor --quick --json"))
def doctor(
    location: IndexOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only name the parts: load nothing, ask no server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Use each part once; show which are in use, what is missing, and how to fix it.

    Exits with 1 if a part is broken, or one is missing that every question needs.
    """
    parts = list(examine(environment(location), use=not quick))
    if as_json:
        print_json([part._asdict() for part in parts])
    else:
        rows = []
        for part in parts:
            why = f"{part.in_use} ({part.why})" if part.why else part.in_use
            rows.append((part.part, _MARKS[part.state], safe(why)))
            rows += [("", "", f"[dim]→ {safe(part.todo)}[/]")] if part.todo else []
        print_table(rows)
    works = all(
        part.state == "ready" or (part.state == "missing" and part.part not in _NEEDED)
        for part in parts
    )
    raise typer.Exit(0 if works else 1)


def examine(  # noqa: C901, PLR0915 - one part after the other
    place: "Environment", *, use: bool = True
) -> Iterator[PartStatus]:
    """Yield for each part whether it is ready, why it was chosen and how to fix it.

    A part is used once: a text is embedded, the index searched, a passage graded, the chat model,
    the web search and the reflection server asked. With `use` off nothing is loaded or sent, and
    "ready" only says that a part is configured. Addresses are shown without users, passwords and
    values of queries.
    """
    from langchain_core.documents import Document
    from langchain_core.messages import HumanMessage

    from crag.answering.model_calls import ask
    from crag.evaluators import load_evaluator
    from crag.events import redact
    from crag.factory import parts
    from crag.factory.embeddings import choose_encoder
    from crag.generation import ExtractiveAnswerer
    from crag.generation.chat import DEFAULT_MODEL
    from crag.index import DocumentIndex
    from crag.models.encoder import DEFAULT_MODEL as ENCODER
    from crag.parts import Prefix
    from crag.telemetry import check

    made: dict[str, Any] = {}

    def status(
        part: str,
        in_use: str,
        why: str,
        choose: Callable[[], Any],
        used: Callable[[Any], object] | None = None,
    ) -> PartStatus:
        """Choose a part, and use it."""
        state, todo = "ready", ""
        try:
            chosen = choose()
            if hasattr(chosen, "verify"):  # A model in a folder: are its files there?
                chosen.verify()
            if use and used is not None and chosen is not None:
                used(chosen)
            made[part] = chosen
        except (IndexNotFoundError, EmptyIndexError) as error:
            state, todo = "missing", str(error)
        except Exception as error:  # noqa: BLE001 - of whatever kind a client raises
            name = "" if isinstance(error, CragError) else f"{type(error).__name__}: "
            state, todo = "broken", f"{name}{error}"
        return PartStatus(part, state, redact(in_use), redact(why), redact(todo))  # type: ignore[arg-type]

    def asked(model: Any) -> None:
        reply = ask(model, [HumanMessage("Reply with one word: ready")])
        if reply.problem:
            raise CragError(str(reply.detail))

    yield from _installation()
    if place.config is not None:
        yield PartStatus("configuration", "ready", str(place.config), "")
    yield status(
        "embeddings", place.embedding_model or ENCODER, "CRAG_EMBEDDING_MODEL or packaged",
        lambda: choose_encoder(place), lambda encoder: encoder.embed_query(_QUESTION),
    )  # fmt: skip
    if "embeddings" in made:
        yield status(
            "index", place.index, "--index, CRAG_INDEX or default",
            lambda: DocumentIndex(place.index, made["embeddings"]).open(),
            lambda index: index.search(_QUESTION, 1),
        )  # fmt: skip
    model = status(
        "answers", place.model or (DEFAULT_MODEL if place.key else "quotations"),
        place.openai_base_url or ("CRAG_MODEL, OPENAI_API_KEY" if place.model or place.key else ""),
        lambda: parts.choose_model(place), asked,
    )  # fmt: skip
    if model.state == "ready" and made["answers"] is None:
        hint = "set OPENAI_API_KEY, or CRAG_MODEL and OPENAI_BASE_URL, for written answers"
        model = model._replace(why="no chat model is configured", todo=hint)
    yield status("prompts", str(place.prompts or "packaged"), "CRAG_PROMPTS",
                 lambda: parts.choose_prompts(place))  # fmt: skip
    chat = made.get("answers")
    yield status(
        "evaluator", place.evaluator, "CRAG_EVALUATOR",
        lambda: parts.choose_evaluator(place, chat),
        lambda evaluator: evaluator.score(_QUESTION, [_PASSAGE]),
    )  # fmt: skip
    yield model
    if place.reranker:
        yield status(
            "reranker", place.reranker, "CRAG_RERANKER",
            lambda: parts.choose_reranker(place, chat, parts.choose_prompts(place)),
            lambda found: found.compress_documents([Document(_PASSAGE)], _QUESTION),
        )  # fmt: skip
    search = status(
        "web search", place.search or "by its key or address", "CRAG_SEARCH",
        lambda: parts.choose_searcher(place), lambda searcher: searcher.search(_QUESTION, 1),
    )  # fmt: skip
    if search.state == "ready":
        in_use, why = repr(made["web search"]), parts.search_name(place).why
        search = search._replace(in_use=redact(in_use), why=why)
    if search.in_use == "None":
        hint = f"{parts.SEARCHER_HINT}, for a second source"
        search = PartStatus("web search", "missing", "none", "nothing is configured", hint)
    yield search
    evaluator = made.get("evaluator") or load_evaluator()
    yield status(
        "reflection", parts.reflection_name(place, has_model=chat is not None),
        "CRAG_REFLECTION, for --method self-rag and self-crag",
        lambda: parts.choose_reflection(place, evaluator, ExtractiveAnswerer(evaluator), chat),
        lambda reflection: reflection.approximation or reflection.decide([Prefix(_QUESTION)]),
    )  # fmt: skip
    yield status("telemetry", place.telemetry, "CRAG_TELEMETRY, CRAG_LOGS",
                 lambda: check(place.telemetry, place.logs))  # fmt: skip


def _installation() -> Iterator[PartStatus]:
    """Tell if the other distribution with a package `crag` is here: both write the same folder."""
    try:
        other = distribution("crag")
    except PackageNotFoundError:
        return
    todo = (
        "its files and ours overwrite each other: pip uninstall crag corrective-rag, and install "
        "corrective-rag again"
    )
    why = "another distribution with a package of the same name"
    yield PartStatus("installation", "broken", f"crag {other.version}", why, todo)
