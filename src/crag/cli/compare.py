"""Ask plain retrieval beside correction, and print what correction changed."""

from asyncio import Runner
from typing import Any

from langchain_core.runnables import RunnableConfig
from rich.console import Console

from crag.cli.run_graph import answered
from crag.cli.show import Trace, place_of_source
from crag.cli.terminal import safe, say
from crag.correction.comparison import Comparison
from crag.graph_registry import GRAPHS
from crag.parts import Parts
from crag.plain import shortened
from crag.settings import Settings

_TEXT = 100


def answered_plainly(  # noqa: PLR0913 - what a run is told
    runner: Runner,
    parts: Parts,
    question: str,
    settings: Settings,
    *,
    shown: bool,
    everything: bool,
) -> dict[str, Any]:
    """Ask plain retrieval and return the state; if `shown`, print its answer between headings.

    With `everything` all that could be quoted is printed too.
    """
    config = RunnableConfig()
    graph = GRAPHS["rag"].build(parts)
    if not shown:
        return answered(runner, graph, {"question": question}, settings, config)
    say("[bold]Plain retrieval[/]")
    trace = Trace(Console(highlight=False), everything=everything, brief=True)
    state = answered(runner, graph, {"question": question}, settings, config, trace)
    say("\n[bold]Corrected[/]")
    return state


def show_comparison(comparison: Comparison) -> None:
    """Print what was dropped, shortened and added, with the place of each."""
    marks = {"dropped": "[red]-[/]", "shortened": "[yellow]~[/]", "added": "[green]+[/]"}
    say()
    for name, strips in comparison._asdict().items():
        say(f"[bold]{name:<9}[/] {len(strips)}")
        for strip in strips:
            text = safe(shortened(strip["text"], _TEXT))
            say(f"  {marks[name]} {safe(place_of_source(strip['source']))} [dim]{text}[/]")
