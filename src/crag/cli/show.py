"""Print a run on the terminal, node by node."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.markup import escape
from rich.segment import ControlType
from rich.text import Text

from crag.cli.critique import CritiqueTrace
from crag.cli.terminal import from_here, safe
from crag.correction.action import decide
from crag.correction.provenance import source_of
from crag.plain import counted, shortened
from crag.state import (
    Action,
    ByAction,
    Citation,
    Source,
    Strip,
    Thresholds,
    Usage,
    add_usage,
)
from crag.text.marks import as_mark
from crag.text.untrusted import without_controls

_COLOURS: ByAction[str] = {"correct": "green", "ambiguous": "yellow", "incorrect": "red"}
_BAR = 20
_TEXT = 100
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

    With `brief` it shows the answer alone, with its sources and what went wrong. `more` is the
    option of the command that shows everything that could be quoted; empty if it has none.
    """

    def __init__(
        self,
        console: Console,
        *,
        verbose: bool = False,
        everything: bool = False,
        brief: bool = False,
        more: str = "--all",
    ) -> None:
        self._console = console
        self._verbose = verbose
        self._everything = everything
        self._brief = brief
        self._more = more
        self._documents: list[Any] = []
        self._draft = ""
        self._message: str | None = None
        self._query = ""
        self._usage = Usage()
        self._critiques = CritiqueTrace(console, verbose=verbose)
        self._nodes: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "acknowledge": self._acknowledge,
            "contextualize": self._complete,
            "retrieve": self._retrieve,
            "grade": self._grade,
            "refine": self._refine,
            "pass_through": self._refine,
            "rewrite": self._rewrite,
            "confirm_search": self._confirm,
            "search": self._search,
            "read_pages": self._read,
            "select": self._select,
            "generate": self._answer,
            "decide": self._critiques.decide,
            "prepare_passages": self._critiques.offer,
            "short_form": partial(self._critiques.judged, "short_form"),
            "beam_step": partial(self._critiques.judged, "beam_step"),
            "graded_loop": partial(self._critiques.judged, "graded_loop"),
            "finish_reflection": self._answer,
        }

    def token(self, text: str, message: str | None = None) -> None:
        """Show a piece of the answer as the model streams it; `message` is the id of its reply.

        It is a draft until the answer was checked, so it is shown on a terminal alone, from which
        it can be withdrawn.
        """
        if not self._console.is_terminal:
            return
        if message != self._message:  # It is asked again: the draft was no answer.
            self._withdraw()
        self._message = message
        self._draft += without_controls(text)
        self._console.print(Text(without_controls(text)), end="", soft_wrap=True)

    def _withdraw(self) -> None:
        """Erase the draft, up to the top of the screen."""
        if not self._draft:
            return
        lines, width = self._draft.split("\n"), max(1, self._console.width)
        rows = sum(max(1, ceil(cell_len(line) / width)) for line in lines)
        erased: list[tuple[ControlType, int]] = [(ControlType.ERASE_IN_LINE, 2)]
        up = [(ControlType.CURSOR_UP, 1), *erased]
        self._console.control(Control(ControlType.CARRIAGE_RETURN, *erased, *up * (rows - 1)))
        self._draft = ""

    def update(self, node: str, update: Mapping[str, Any]) -> None:
        """Print what `node` wrote, then the events it recorded."""
        self._withdraw()
        if node not in self._nodes:  # A subgraph, whose nodes were already shown.
            return
        if self._brief and node not in _OF_ANSWERS:
            if node == "contextualize":
                self._complete(update)
            return
        self._nodes[node](update)
        self._usage = add_usage(self._usage, update.get("usage") or Usage())
        for entry in update.get("events") or []:
            fallback = f" → {entry['fallback']}" if entry["fallback"] else ""
            self._line("event", f"[yellow]{entry['kind']}[/]: {safe(entry['detail'] + fallback)}")

    def spent(self, seconds: Mapping[str, float]) -> None:
        """Print the tokens of models and their cost, and if verbose the seconds of each node."""
        read, written = (self._usage.get(name, 0) for name in ("input_tokens", "output_tokens"))
        if read or written:
            cost = f", cost {self._usage['cost']:.6g}" if self._usage.get("cost") else ""
            self._line("tokens", f"{read:,} read, {written:,} written{cost}")
        if self._verbose:
            self._line("seconds", ", ".join(f"{name} {took:.2f}" for name, took in seconds.items()))

    def _line(self, label: str, text: str) -> None:
        self._console.print(f"[bold]{label:<9}[/] {text}", soft_wrap=True)

    def _complete(self, update: Mapping[str, Any]) -> None:
        self._line("question", safe(update["question"]))

    def _retrieve(self, update: Mapping[str, Any]) -> None:
        self._documents = update["documents"]
        self._line("retrieve", counted(len(self._documents), "document"))

    def _grade(self, update: Mapping[str, Any]) -> None:
        action: Action = update["action"]
        limits: Thresholds = update["thresholds"]
        words = f"upper {limits['upper']:.2f}, lower {limits['lower']:.2f}"
        self._line("grade", f"[bold {_COLOURS[action]}]{action}[/]   {words}")
        graded = zip(self._documents, update["scores"], strict=True)
        for rank, (document, score) in enumerate(graded):
            place = place_of_source(source_of(document, rank))
            bar = f"[{_COLOURS[decide([score], **limits)]}]{_bar(score)}[/]"
            self._console.print(f"  {score:+.2f} {bar} {safe(place)}", soft_wrap=True)

    def _refine(self, update: Mapping[str, Any]) -> None:
        self._strips("refine", update["internal"])

    def _rewrite(self, update: Mapping[str, Any]) -> None:
        self._query = update["query"]
        self._line("rewrite", safe(self._query))

    def _confirm(self, update: Mapping[str, Any]) -> None:
        if update["query"] != self._query:  # A human changed the query.
            self._line("confirm_search", safe(update["query"]))

    def _search(self, update: Mapping[str, Any]) -> None:
        if update["hits"]:
            self._line("search", counted(len(update["hits"]), "hit"))
        for hit in update["hits"]:
            title = safe(shortened(hit["title"], _TEXT))
            self._console.print(f"  {title} [dim]{safe(hit['url'])}[/]", soft_wrap=True)

    def _read(self, update: Mapping[str, Any]) -> None:
        pages = update["pages"]
        if not pages:
            return
        found = sum(page["paragraphs"] for page in pages)
        self._line("read_pages", f"{counted(len(pages), 'page')}, {counted(found, 'paragraph')}")
        for page in pages:
            colour = "red" if page["status"] == "failed" else "green"
            told = safe(page["detail"]) or counted(page["paragraphs"], "paragraph")
            status = f"[{colour}]{page['status']:<6}[/]"
            self._console.print(f"  {status} {safe(page['url'])} [dim]({told})[/]", soft_wrap=True)

    def _select(self, update: Mapping[str, Any]) -> None:
        if update["external"]:
            self._strips("select", update["external"])

    def _strips(self, label: str, strips: Sequence[Strip]) -> None:
        kept = [strip for strip in strips if strip["kept"]]
        self._line(label, f"{len(kept)} of {counted(len(strips), 'strip')} kept")
        for strip in strips if self._verbose else kept:
            mark = "[green]+[/]" if strip["kept"] else "[dim]-[/]"
            score = "     " if strip["score"] is None else f"{strip['score']:+.2f}"
            reason = "" if strip["kept"] else f" [dim]({escape(strip['reason'])})[/]"
            text = safe(shortened(strip["text"], _TEXT))
            self._console.print(f"  {mark} {score} {text}{reason}", soft_wrap=True)
        dropped = Counter(strip["reason"] for strip in strips if not strip["kept"])
        for reason, count in dropped.items():
            self._console.print(f"  [dim]- {count} dropped: {escape(reason)}[/]", soft_wrap=True)

    def _answer(self, update: Mapping[str, Any]) -> None:
        self._console.print()
        answer = Text(_as_printed(update["answer"]))
        answer.stylize("bold" if update["outcome"] == "answered" else "yellow")
        for span in _spans(update["citations"]):
            answer.highlight_words([span], "underline")
        self._console.print(answer, soft_wrap=True)
        self._console.print()
        for citation in update["citations"]:
            self._console.print(_reference(citation), soft_wrap=True)
        for text in _unsupported(update):
            self._line("no source", f"[yellow]supports:[/] {safe(text)}")
        self._further(update.get("further", []))

    def _acknowledge(self, update: Mapping[str, Any]) -> None:
        self._answer({**update, "outcome": "answered", "citations": []})

    def _further(self, citations: Sequence[Citation]) -> None:
        """Print what could be quoted besides, or say how to see it, if it can be seen."""
        if not self._everything:
            if citations and self._more:
                self._console.print(f"  [dim]{len(citations)} more with {self._more}[/]")
            return
        for citation in citations:
            self._console.print()
            for quote in citation.get("quotes", []):
                self._console.print(Text(f"“{_as_printed(quote['text'])}”"), soft_wrap=True)
            self._console.print(_reference(citation), soft_wrap=True)


def _as_printed(text: str) -> str:
    """Take out what stands there for readers of Markdown: brackets of addresses, and escapes."""
    text = _ADDRESS.sub(r"\1", without_controls(text))
    return _ESCAPED.sub(lambda found: found["code"] or found["shown"], text)


def _unsupported(update: Mapping[str, Any]) -> list[str]:
    return [
        update["answer"][one["start"] : one["end"]]
        for one in update.get("sentences") or []
        if one["status"] == "unsupported"
    ]


def _spans(citations: Sequence[Citation]) -> Iterator[str]:
    """Yield the words in which a quotation holds the answer itself."""
    for citation in citations:
        for quote in citation.get("quotes", []):
            if quote["span"] is not None:
                yield " ".join(without_controls(citation["text"][slice(*quote["span"])]).split())


def _reference(citation: Citation) -> Text:
    text = Text(f"  {as_mark(citation['number'])} ")
    source = citation["source"]
    place = without_controls(place_of_source(source) or source["id"])
    link = source["url"]
    if link and "://" not in link and Path(link).exists():
        link = Path(link).resolve().as_uri()
    text.append(place, style=f"link {link}" if "://" in link else "")
    for other in source.get("also", []):
        text.append(f"\n      also {without_controls(place_of_source(_elsewhere(other)))}")
    return text


def _elsewhere(place: Mapping[str, str]) -> Source:
    """Return another place of a text as a source."""
    url, position = str(place.get("source", "")), str(place.get("position", ""))
    return Source(id=url, title="", url=url, position=position)


def place_of_source(source: Source) -> str:
    """Return the place for a user: path, relative if below this folder, and position."""
    here = from_here(source["url"]) or source["title"]
    return ", ".join(part for part in (here, source["position"]) if part)


def _bar(score: float) -> str:
    filled = round((min(max(score, -1.0), 1.0) + 1) / 2 * _BAR)
    return "█" * filled + "░" * (_BAR - filled)
