"""What correction changed: plain retrieval and Corrective RAG on the same question."""

from asyncio import Runner
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from rich.console import Console

from crag.cli.run_graph import answered
from crag.cli.show import Trace, place_of_source
from crag.cli.terminal import safe, say, shortened
from crag.graph_registry import GRAPHS
from crag.parts import Parts
from crag.settings import Settings
from crag.state import Strip

_TEXT = 100


class Comparison(NamedTuple):
    """What became of the knowledge of plain retrieval."""

    dropped: list[Strip]
    """Documents that plain retrieval passed on, and of which correction kept nothing."""
    shortened: list[Strip]
    """Documents of which correction kept some strips and dropped others."""
    added: list[Strip]
    """Strips that correction kept and plain retrieval did not have, such as those of the web."""


def answered_plainly(
    runner: Runner, parts: Parts, question: str, settings: Settings, *, shown: bool
) -> dict[str, Any]:
    """Ask plain retrieval and return the state; if `shown`, print its answer between headings."""
    config = RunnableConfig()
    graph = GRAPHS["rag"].build(parts)
    if not shown:
        return answered(runner, graph, {"question": question}, settings, config)
    say("[bold]Plain retrieval[/]")
    trace = Trace(Console(highlight=False), brief=True)
    state = answered(runner, graph, {"question": question}, settings, config, trace)
    say("\n[bold]Corrected[/]")
    return state


def compare(plain: Mapping[str, Any], corrected: Mapping[str, Any]) -> Comparison:
    """Compare the knowledge in the states of both graphs after the same question."""
    before: Sequence[Strip] = plain["internal"]
    after: Sequence[Strip] = [*corrected["internal"], *corrected["external"]]
    known = {strip["source"]["id"] for strip in before}
    kept = {strip["source"]["id"] for strip in after if strip["kept"]}
    cut = kept & {strip["source"]["id"] for strip in after if not strip["kept"]}
    return Comparison(
        dropped=[strip for strip in before if strip["source"]["id"] not in kept],
        shortened=[strip for strip in before if strip["source"]["id"] in cut],
        added=[strip for strip in after if strip["kept"] and strip["source"]["id"] not in known],
    )


def show_comparison(comparison: Comparison) -> None:
    """Print what was dropped, shortened and added, with the place of each."""
    marks = {"dropped": "[red]-[/]", "shortened": "[yellow]~[/]", "added": "[green]+[/]"}
    say()
    for name, strips in comparison._asdict().items():
        say(f"[bold]{name:<9}[/] {len(strips)}")
        for strip in strips:
            text = safe(shortened(strip["text"], _TEXT))
            say(f"  {marks[name]} {safe(place_of_source(strip['source']))} [dim]{text}[/]")
