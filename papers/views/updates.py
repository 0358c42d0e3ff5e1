"""The update of a node as Markdown, without empty keys."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from crag.events import Event
from crag.papers.views.display import Table, plain, shortened
from crag.reflection.cleaning import cleaned
from crag.state import (
    Choice,
    Citation,
    Critique,
    OfferedPassage,
    Strip,
    Thresholds,
    WebPage,
)
from crag.text.marks import as_mark

_TEXT, _CANDIDATE = 90, 70
_NUMBERS = ["IsRel", "IsSup", "IsUse", "sequence", "score"]


def written(update: Mapping[str, Any]) -> list[str]:
    """Return an update as Markdown, one text for each non-empty key."""
    shown = {**update, **(update.get("reflection") or {})}
    if update.get("thresholds"):
        shown["graded"] = (shown.pop("documents"), update["thresholds"])
    return [show(shown[key]) for key, show in _SHOWN.items() if shown.get(key)]


def _documents(documents: Sequence[Document]) -> str:
    titles = [
        str(document.metadata.get("title", "")) or document.page_content for document in documents
    ]
    listed = "\n".join(f"1. {plain(shortened(title, _TEXT))}" for title in titles)
    return f"`documents`, nearest first\n\n{listed}"


def _graded(graded: tuple[Sequence[Document], Thresholds]) -> str:
    documents, thresholds = graded
    scores = [document.metadata["score"] for document in documents]
    rows = [
        (float(score), str(document.metadata.get("title", "")))
        for document, score in zip(documents, scores, strict=True)
    ]
    best = [place for place, score in enumerate(scores) if score == max(scores)]
    table = Table(["score", "document"], rows, bold=best, numeric=["score"]).markdown()
    limits = f"upper {thresholds['upper']:.2f}, lower {thresholds['lower']:.2f}"
    return f"`documents` with scores, and the `thresholds` {limits}\n\n{table}"


def _strips(strips: Sequence[Strip]) -> str:
    name = "of the web" if strips[0]["kind"] == "web" else "of documents"
    if not any(strip["reason"] for strip in strips):
        return f"`strips` {name}, {len(strips)}, not judged yet"
    kept = [strip for strip in strips if strip["kept"]]
    rows = [(s["score"], s["text"], s["source"]["title"]) for s in kept]
    rows = [(score, shortened(text, _TEXT), title) for score, text, title in rows]
    table = Table(["score", "kept strip", "of"], rows, numeric=["score"]).markdown()
    reasons = Counter(strip["reason"] for strip in strips if not strip["kept"])
    dropped = "".join(f"\n\n*{number} dropped: {why}*" for why, number in reasons.items())
    head = f"`strips` {name}, {len(kept)} of {len(strips)} kept"
    return head + (f"\n\n{table}" if kept else "") + dropped


def _pages(pages: Sequence[WebPage]) -> str:
    if all(page["status"] == "found" for page in pages):
        listed = "\n".join(f"1. {plain(page['title'])}, `{page['url']}`" for page in pages)
        return f"`pages`\n\n{listed}"
    counts = Counter(page["status"] for page in pages)
    return "`pages` " + ", ".join(f"{number} {status}" for status, number in counts.items())


def _choices(choices: Sequence[Choice]) -> str:
    last = choices[-1]
    return f"`choices` {last['action'].replace('_', ' ')}: {plain(last['why'])}"


def _passages(passages: Sequence[OfferedPassage]) -> str:
    rows = [(p["label"], p["title"], shortened(p["text"], _TEXT)) for p in passages]
    return "`passages`\n\n" + Table(["knowledge", "title", "text"], rows).markdown()


def _critiques(critiques: Sequence[Critique]) -> str:
    return f"`critiques`\n\n{critique_table(critiques).markdown()}"


def critique_table(critiques: Sequence[Critique]) -> Table:
    """List candidates in the order of their critiques: text, each critique, and the outcome.

    Candidates in the answer are bold. IsRel, IsSup and the sequence score are in [0, 1], IsUse is
    in [-1, 1]; a missing critique is empty.
    """
    chosen = [place for place, critique in enumerate(critiques) if critique["chosen"]]
    segments = {critique["segment"] for critique in critiques}
    columns = ["passage", "candidate", *_NUMBERS, "what became of it"]
    rows = [_row(critique) for critique in critiques]
    if len(segments) > 1:
        columns.insert(0, "segment")
        rows = [[c["segment"] + 1, *row] for c, row in zip(critiques, rows, strict=True)]
    return Table(columns, rows, bold=chosen, numeric=_NUMBERS)


def _row(critique: Critique) -> list[object]:
    passage = "none" if critique["passage"] is None else str(critique["passage"] + 1)
    numbers = (
        critique["relevance"],
        critique["support"],
        critique["utility"],
        critique["sequence"],
        critique["total"],
    )
    said = shortened(cleaned(critique["text"]), _CANDIDATE)
    return [passage, said, *(_two_decimals(number) for number in numbers), critique["why"]]


def _two_decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _citations(citations: Sequence[Citation]) -> str:
    listed = (
        f"{as_mark(citation['number'])} {plain(citation['source']['title'])}"
        for citation in citations
    )
    return "`citations` " + ", ".join(listed)


def _events(events: Sequence[Event]) -> str:
    return "\n\n".join(
        f"`{entry['kind']}` {plain(entry['detail'])}"
        + (f" → {plain(entry['fallback'])}" if entry["fallback"] else "")
        for entry in events
    )


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "query": lambda query: f"`query` {plain(query)}",
    "documents": _documents,
    "graded": _graded,
    "action": lambda action: f"`action` **{action}**",
    "strips": _strips,
    "pages": _pages,
    "choices": _choices,
    "passages": _passages,
    "critiques": _critiques,
    "answer": lambda answer: "`answer`\n\n> " + plain(answer),
    "citations": _citations,
    "events": _events,
}
