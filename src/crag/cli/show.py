"""Print a run on the terminal, node by node."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from crag.answering.outcome import more_passages
from crag.cli.terminal import from_here, safe, say
from crag.correction.action import decide
from crag.correction.provenance import source_of
from crag.plain import counted, shortened
from crag.reflection.cleaning import cleaned
from crag.state import Citation, Source, Strip, Usage, add_usage
from crag.text.marks import as_mark, with_numbers
from crag.text.untrusted import without_controls

_COLOURS = {"correct": "green", "ambiguous": "yellow", "incorrect": "red"}
_BAR, _TEXT = 20, 100
_ADDRESS = re.compile(r"<(https?://[^<>\s]+)>")
_ESCAPED = re.compile(
    r"(?P<code>(?P<fence>`+|~{3,})(?![`~])[\s\S]*?(?<![`~])(?P=fence)(?![`~]))"
    r"|\\(?P<shown>[!-/:-@\[-`{-~])"
)
"""Code, or a character that Markdown is not to read."""
_OF_ANSWERS = {"acknowledge", "generate", "finish_reflection"}
"""Nodes that write the answer to a question."""


class Trace:
    """Shows each update of the state as it arrives, and tokens as they are generated.

    With `brief` it shows the answer alone, with its sources and what went wrong; with `verbose`
    also what was dropped, and all that could be quoted.
    """

    def __init__(
        self, console: Console | None = None, *, verbose: bool = False, brief: bool = False
    ) -> None:
        self._console = console or Console(highlight=False)
        self._verbose, self._brief = verbose, brief
        self._live: Live | None = None
        self._draft, self._message = "", ""
        self._usage = Usage()
        self._reflection: dict[str, Any] = {}

    def token(self, text: str, message: str | None = None) -> None:
        """Show a piece of the answer as the model streams it; `message` is the id of its reply.

        It is a draft until the answer was checked, so it is shown on a terminal alone, from which
        it can be withdrawn. Another reply says that the one before it was no answer.
        """
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(console=self._console, transient=True)
            self._live.start()
        self._draft = text if message != self._message else self._draft + text
        self._message = message or ""
        self._live.update(Markdown(without_controls(self._draft), hyperlinks=False))

    def withdraw(self) -> None:
        """Erase the draft."""
        if self._live is not None:
            self._live.stop()
        self._live, self._draft = None, ""

    def update(self, node: str, update: Mapping[str, Any]) -> None:
        """Print what `node` wrote, then the events it recorded."""
        self.withdraw()
        self._reflection |= update.get("reflection") or {}
        is_shown = node in {"contextualize", *_OF_ANSWERS} or not self._brief
        if node in {"web", "reflect"} or not is_shown:  # Graphs, whose nodes were already shown.
            return
        for line in self._lines(node, update):
            self._print(line)
        if node in _OF_ANSWERS:
            self._answer(update)
        self._usage = add_usage(self._usage, update.get("usage") or Usage())
        for entry in update.get("events") or []:
            fallback = f" → {entry['fallback']}" if entry["fallback"] else ""
            text = f"[yellow]{entry['kind']}[/]: {safe(entry['detail'] + fallback)}"
            self._print(_labelled("event", text))

    def spent(self) -> None:
        """Print the tokens of models."""
        read, written = (self._usage.get(name, 0) for name in ("input_tokens", "output_tokens"))
        if read or written:
            say(_labelled("tokens", f"{read:,} read, {written:,} written"))

    def _print(self, line: str = "") -> None:
        self._console.print(line, soft_wrap=True)

    def _lines(self, node: str, update: Mapping[str, Any]) -> Iterator[str]:
        """Yield what a node did, line by line; nothing of nodes that are not known."""
        match node:
            case "contextualize":
                yield _labelled("question", safe(update["question"]))
            case "retrieve":
                yield _labelled("retrieve", counted(len(update["documents"]), "document"))
            case "grade":
                yield from _graded(update)
            case "refine" | "pass_through" | "select" if update["strips"]:
                label = "select" if node == "select" else "refine"
                yield from _strips(label, update["strips"], dropped=self._verbose)
            case "rewrite" | "confirm_search" if update.get("query"):  # A human may change it.
                yield _labelled(node, safe(update["query"]))
            case "search" if update["pages"]:
                yield _labelled("search", counted(len(update["pages"]), "hit"))
                for hit in update["pages"]:
                    yield f"  {safe(shortened(hit['title'], _TEXT))} [dim]{safe(hit['url'])}[/]"
            case "read_pages":
                yield from _pages([one for one in update["pages"] if one["status"] != "found"])
            case "finish_reflection":
                yield from self._reflected()

    def _reflected(self) -> Iterator[str]:
        """Yield the decisions, passages and critiques of a reflection."""
        record = self._reflection
        for choice in record.get("choices") or []:
            place = f"segment {choice['segment'] + 1}: " if choice["segment"] else ""
            action = f"{place}[bold]{choice['action'].replace('_', ' ')}[/]"
            yield _labelled("decide", f"{action}   {safe(choice['why'])}")
        for one in record.get("passages") or []:
            grade = f" [dim]({one['grade']})[/]" if one["grade"] else ""
            yield f"  {one['label']:<9} {safe(shortened(one['title'], _TEXT))}{grade}"
        if record.get("approximation"):
            yield _labelled("", f"[yellow]approximation[/]: {safe(record['approximation'])}")
        critiques = record.get("critiques") or []
        yield _labelled("reflect", counted(len(critiques), "candidate"))
        for one in critiques:
            text = safe(shortened(cleaned(one["text"]), _TEXT))
            mark = "[green]+[/]" if one["kept"] or one["chosen"] else "[dim]-[/]"
            if text or self._verbose:
                why = f"[dim]({_numbers(one)}; {safe(one['why'])})[/]"
                yield f"  {mark} {one['total']:+.2f} {text} {why}"

    def _answer(self, update: Mapping[str, Any]) -> None:
        answer, citations = from_one(update["answer"], update.get("citations") or [])
        # Around a table, a list or code, quotation marks would stand on lines of their own.
        answer = answer.replace("“\n\n", "").replace("\n\n” [", "\n\n[")
        self._print()
        if self._console.is_terminal:
            self._console.print(Markdown(without_controls(answer), hyperlinks=False))
        else:
            self._print(safe(_as_printed(answer)))
        self._print()
        for citation in citations:
            self._print(_reference(citation))
        for one in update.get("sentences") or []:
            if one["status"] == "unsupported":
                text = safe(update["answer"][one["start"] : one["end"]])
                self._print(_labelled("no source", f"[yellow]supports:[/] {text}"))
        further = more_passages(update)
        for citation in further if self._verbose else ():
            self._print(f"\n{_quoted(citation)}")
        if further and not (self._verbose or self._brief):
            self._print(f"  [dim]{len(further)} more with --verbose[/]")


def sources_of(state: Mapping[str, Any]) -> list[str]:
    """Return the passages that the answer of a state cites, each with its place."""
    return [_quoted(one) for one in from_one(state.get("answer") or "", state.get("citations"))[1]]


def from_one(answer: str, citations: Sequence[Citation] | None) -> tuple[str, Sequence[Citation]]:
    """Number the citations from 1 in the order of the answer, as the page does."""
    known = {one["number"]: one for one in citations or ()}
    order: dict[int, int] = {}

    def change(numbers: Sequence[int]) -> Sequence[int]:
        return [order.setdefault(n, len(order) + 1) if n in known else n for n in numbers]

    written = with_numbers(answer, change)
    change(list(known))  # Those that the answer does not name come last.
    return written, [{**known[number], "number": shown} for number, shown in order.items()]


def _labelled(label: str, text: str) -> str:
    return f"[bold]{label:<9}[/] {text}"


def _place_of(source: Source) -> str:
    """Return the place for a user: path, relative if below this folder, and position."""
    here = from_here(source["url"]) or source["title"] or source["id"]
    return safe(", ".join(part for part in (here, source["position"]) if part))


def _graded(update: Mapping[str, Any]) -> Iterator[str]:
    action, limits = update["action"], update["thresholds"]
    words = f"upper {limits['upper']:.2f}, lower {limits['lower']:.2f}"
    yield _labelled("grade", f"[bold {_COLOURS[action]}]{action}[/]   {words}")
    for rank, document in enumerate(update["documents"]):
        score = document.metadata["score"]
        filled = round((min(max(score, -1.0), 1.0) + 1) / 2 * _BAR)
        bar = "█" * filled + "░" * (_BAR - filled)
        colour = _COLOURS[decide([score], **limits)]
        yield f"  {score:+.2f} [{colour}]{bar}[/] {_place_of(source_of(document, rank))}"


def _strips(label: str, strips: Sequence[Strip], *, dropped: bool) -> Iterator[str]:
    kept = [strip for strip in strips if strip["kept"]]
    yield _labelled(label, f"{len(kept)} of {counted(len(strips), 'strip')} kept")
    for strip in strips if dropped else kept:
        mark = "[green]+[/]" if strip["kept"] else "[dim]-[/]"
        score = "     " if strip["score"] is None else f"{strip['score']:+.2f}"
        reason = "" if strip["kept"] else f" [dim]({safe(strip['reason'])})[/]"
        yield f"  {mark} {score} {safe(shortened(strip['text'], _TEXT))}{reason}"
    reasons = Counter(strip["reason"] for strip in strips if not strip["kept"])
    yield from (f"  [dim]- {count} dropped: {safe(one)}[/]" for one, count in reasons.items())


def _pages(pages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if pages:
        found = counted(sum(page["paragraphs"] for page in pages), "paragraph")
        yield _labelled("read_pages", f"{counted(len(pages), 'page')}, {found}")
    for page in pages:
        status = "[red]failed[/]" if page["status"] == "failed" else "[green]read[/]  "
        told = page["detail"] or counted(page["paragraphs"], "paragraph")
        yield f"  {status} {safe(page['url'])} [dim]({safe(told)})[/]"


def _numbers(critique: Mapping[str, Any]) -> str:
    names = {"IsRel": "relevance", "IsSup": "support", "IsUse": "utility"}
    shown = (
        f"{name} {critique[key]:.2f}" for name, key in names.items() if critique[key] is not None
    )
    return ", ".join(shown)


def _as_printed(text: str) -> str:
    """Take out what stands there for readers of Markdown: brackets of addresses, and escapes."""
    text = _ADDRESS.sub(r"\1", without_controls(text))
    return _ESCAPED.sub(lambda found: found["code"] or found["shown"], text)


def _quoted(citation: Citation) -> str:
    texts = [quote["text"] for quote in citation.get("quotes", [])] or [citation["text"]]
    return "\n".join([*(f"“{safe(_as_printed(text))}”" for text in texts), _reference(citation)])


def _reference(citation: Citation) -> str:
    place, link = _place_of(citation["source"]), citation["source"]["url"]
    if link and "://" not in link and Path(link).exists():
        link = Path(link).resolve().as_uri()
    if "://" in link and not re.search(r"[\[\]\s]", link):
        place = f"[link={safe(link)}]{place}[/link]"
    return f"  {safe(as_mark(citation['number']))} {place}"
