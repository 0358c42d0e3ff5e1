"""Print decisions and critiques of a reflecting model as tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crag.cli.terminal import safe
from crag.plain import counted, shortened
from crag.reflection.cleaning import cleaned
from crag.state import Choice, Critique, OfferedPassage

_COLUMNS = ("IsRel", "IsSup", "IsUse", "seq", "score")
_TEXT = 56


class CritiqueTrace:
    """Shows each decision and critique once, although updates contain all of them so far."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._decided = 0
        self._judged = 0

    def decide(self, update: Mapping[str, Any]) -> None:
        """Show the decision before the first segment, and whether critiques are approximated."""
        self._choices(update["choices"])
        if update["approximation"]:
            said = escape(update["approximation"])
            self._line("", f"[yellow]approximation[/]: {said}")

    def offer(self, update: Mapping[str, Any]) -> None:
        """Show the passages for reflection; plain documents were already shown."""
        passages: Sequence[OfferedPassage] = update["passages"]
        self._line("prepare_passages", counted(len(passages), "passage"))
        for passage in passages:
            if passage["label"] == "document" and not passage["grade"]:
                continue
            grade = f" [dim]({passage['grade']})[/]" if passage["grade"] else ""
            words = f"[dim]{counted(len(passage['text'].split()), 'word')}[/]"
            self._console.print(
                f"  {passage['label']:<9} {safe(passage['title'])} {words}{grade}", soft_wrap=True
            )

    def judged(self, node: str, update: Mapping[str, Any]) -> None:
        """Show the new critiques of `short_form`, `beam_step` or `graded_loop`."""
        self._choices(update["choices"])
        critiques: Sequence[Critique] = update["critiques"][self._judged :]
        self._judged = len(update["critiques"])
        label = f"[yellow]approximation[/]: {escape(update['approximation'])}"
        count = counted(len(critiques), "candidate")
        self._line(node, f"{count}   {label}" if update["approximation"] else count)
        shown = [c for c in critiques if self._verbose or cleaned(c["text"])]
        if shown:
            self._console.print(_table(shown))
        left_out = Counter(critique["why"] for critique in critiques if critique not in shown)
        for reason, number in left_out.items():
            self._console.print(
                f"  [dim]- {number} without text: {escape(reason)}[/]", soft_wrap=True
            )

    def _choices(self, choices: Sequence[Choice]) -> None:
        for choice in choices[self._decided :]:
            action = choice["action"].replace("_", " ")
            place = f"segment {choice['segment'] + 1}: " if choice["segment"] else ""
            self._line("decide", f"{place}[bold]{action}[/]   {safe(choice['why'])}")
        self._decided = len(choices)

    def _line(self, label: str, text: str) -> None:
        self._console.print(f"[bold]{label:<9}[/] {text}", soft_wrap=True)


def _table(critiques: Sequence[Critique]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=True, header_style="dim")
    table.add_column("")
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("passage")
    table.add_column("text")
    table.add_column("why", style="dim")
    for critique in critiques:
        table.add_row(*_row(critique))
    return table


def _row(critique: Critique) -> list[str]:
    colour = "green" if critique["kept"] or critique["chosen"] else "dim"
    mark = "+" if critique["kept"] or critique["chosen"] else "-"
    numbers = [critique["relevance"], critique["support"], critique["utility"]]
    numbers += [critique["sequence"], critique["total"]]
    passage = "none" if critique["passage"] is None else f"{critique['passage'] + 1} "
    return [
        f"[{colour}]{mark}[/]",
        *("" if number is None else f"{number:.2f}" for number in numbers),
        passage + safe(shortened(critique["title"], 24)),
        safe(shortened(cleaned(critique["text"]), _TEXT)),
        escape(critique["why"]),
    ]
