"""Ask for somebody at a terminal: a draft of the answer, then the answer with its places.

With ``--trace``, what led to it comes between them.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from crag.api import Answer, OpenDocuments, Question, open_documents
from crag.cli.terminal import assigned, from_here, safe, say
from crag.correction.provenance import source_of
from crag.plain import counted, shortened
from crag.reflection.cleaning import cleaned
from crag.settings import Settings
from crag.state import Citation, Source, reflected
from crag.telemetry import start
from crag.text.marks import as_mark, with_numbers
from crag.text.untrusted import without_controls

_TEXT = 100


def opened(
    location: str | None, settings: Sequence[str] | None, folder: str | None, method: str
) -> OpenDocuments:
    """Open documents with the options of a command; telemetry watches them from here on.

    Raises:
        CragError: a setting or a part cannot be used, or there is no index.
    """
    given = assigned(settings)
    if folder is not None:  # One that is there is named from wherever it is asked.
        given["folder"] = str(Path(folder).resolve()) if Path(folder).exists() else folder
    chosen = Settings.model_validate(given)
    start()
    return open_documents(location, method=method, settings=chosen)


async def ask(documents: OpenDocuments, question: Question) -> Answer:
    """Return the answer; a draft of it shows until then.

    Where Ctrl-C ends it, the calls that the graph waited for are cancelled.
    """
    draft, reply = "", None
    console = Console(stderr=True, quiet=not sys.stderr.isatty())
    with Live(console=console, transient=True, redirect_stdout=False) as live:
        async for piece in documents.astream(question):
            if isinstance(piece, Answer):
                return piece
            draft, reply = (draft if piece.reply == reply else "") + piece.text, piece.reply
            live.update(Markdown(without_controls(draft), hyperlinks=False))
    raise AssertionError("a stream ends with the answer")


def show(state: Mapping[str, Any], *, trace: bool = False) -> None:
    """Print the answer of a run: sources, what no source supports, events, outcome.

    With `trace`, what led to it comes first.
    """
    for line in (*_evidence(state), *_reflection(state)) if trace else ():
        say(line)
    if state["question"] != (state.get("asked") or state["question"]):
        say(f"[bold]question[/]  {safe(state['question'])}")
    answer, citations = from_one(state["answer"], state.get("citations") or [])
    say()
    _print_markdown(answer)
    say()
    for citation in citations:
        say(f"  {safe(as_mark(citation['number']))} {_place_of(citation['source'])}")
    for one in state.get("sentences") or []:
        if one["status"] == "unsupported":
            say(
                f"[yellow]no source supports:[/] {safe(state['answer'][one['start'] : one['end']])}"
            )
    for event in state.get("events") or []:
        fallback = f" → {event['fallback']}" if event["fallback"] else ""
        say(f"[yellow]{event['kind']}[/]: {safe(event['detail'] + fallback)}")
    usage, action = state.get("usage") or {}, state.get("action")
    tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    calls = usage.get("llm_calls") and f"{counted(usage['llm_calls'], 'model call')}"
    told = (state["outcome"].replace("_", " "), action and f"graded {action}", calls,
            tokens and counted(tokens, "token"))  # fmt: skip
    say(f"[dim]{', '.join(filter(None, told))}[/]")


def show_sources(state: Mapping[str, Any]) -> None:
    """Print the passages that the answer of a state cites, each with its place."""
    _, citations = from_one(state.get("answer") or "", state.get("citations") or [])
    for citation in citations:
        texts = [quote["text"] for quote in citation.get("quotes", [])] or [citation["text"]]
        _print_markdown("\n\n".join(texts))
        say(f"  {safe(as_mark(citation['number']))} {_place_of(citation['source'])}\n")
    if not citations:
        say("Nothing was cited yet.")


def from_one(answer: str, citations: Sequence[Citation]) -> tuple[str, Sequence[Citation]]:
    """Number the citations from 1 in the order of the answer, as the page does."""
    known = {one["number"]: one for one in citations}
    order: dict[int, int] = {}

    def change(numbers: Sequence[int]) -> Sequence[int]:
        return [order.setdefault(n, len(order) + 1) if n in known else n for n in numbers]

    written = with_numbers(answer, change)
    change(list(known))  # Those that the answer does not name come last.
    return written, [{**known[number], "number": shown} for number, shown in order.items()]


def _evidence(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the documents with their scores, the action, the pages, and all strips."""
    for rank, document in enumerate(state.get("documents") or []):
        yield f"  {_score(document.metadata.get('score'))} {_place_of(source_of(document, rank))}"
    told = [f"{key}: {state[key]}" for key in ("action", "query") if state.get(key)]
    told += [f"{name} {limit:.2f}" for name, limit in (state.get("thresholds") or {}).items()]
    if told:
        yield f"[bold]{safe(', '.join(told))}[/]"
    for page in state.get("pages") or []:
        detail = page["detail"] or counted(page["paragraphs"], "paragraph")
        yield f"  {safe(' '.join([page['status'], page['url'], detail]))}"
    for strip in state.get("strips") or []:
        mark, reason = "+" if strip["kept"] else "-", strip["reason"] and f" ({strip['reason']})"
        yield f"  {mark} {_score(strip['score'])} {safe(shortened(strip['text'], _TEXT) + reason)}"


def _reflection(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the decisions and critiques of a reflection."""
    record = reflected(state)
    if record.get("approximation"):
        yield f"approximation: {safe(record['approximation'])}"
    for choice in record.get("choices") or []:
        yield f"segment {choice['segment'] + 1}: {choice['action']}, {safe(choice['why'])}"
    for one in record.get("critiques") or []:
        mark = "+" if one["kept"] or one["chosen"] else "-"
        scores = [f"{name} {one[name]:.2f}" for name in ("relevance", "support", "utility")
                  if one[name] is not None]  # fmt: skip
        why, text = f"({', '.join([*scores, one['why']])})", shortened(cleaned(one["text"]), _TEXT)
        yield f"  {mark} {_score(one['total'])} {safe(text)} {safe(why)}"


def _score(score: float | None) -> str:
    return "     " if score is None else f"{score:+.2f}"


def _print_markdown(text: str) -> None:
    """Print Markdown wrapped at words, without the spaces that fill its lines."""
    console = Console(highlight=False)
    with console.capture() as printed:
        console.print(Markdown(without_controls(text), hyperlinks=False))
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in printed.get().splitlines()))


def _place_of(source: Source) -> str:
    """Return the place for a user: path, relative if below this folder, and position."""
    here = from_here(source["url"]) or source["title"] or source["id"]
    return safe(", ".join(part for part in (here, source["position"]) if part))
