"""Walk a graph: run it once, and show what each node wrote."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document
from langgraph.graph.state import CompiledStateGraph

from crag.api import values_of
from crag.papers.settings import PaperSettings
from crag.papers.views.display import Table, plain
from crag.plain import shortened
from crag.reflection.cleaning import cleaned
from crag.settings import Settings
from crag.state import Critique, State, Strip, WebPage

_TEXT, _CANDIDATE = 90, 70
_NUMBERS = ["IsRel", "IsSup", "IsUse", "sequence", "score"]


class Step(NamedTuple):
    """The update of one node."""

    node: str
    """Its name; in a subgraph with the subgraph's name first, as in ``web:search``."""
    update: Mapping[str, Any]


class Walk:
    """One run of a graph, node by node; a notebook shows it as a list of its steps."""

    def __init__(self, steps: list[Step], state: State) -> None:
        self.steps = steps
        self.state = state

    def __repr__(self) -> str:
        return " → ".join(step.node for step in self.steps)

    def _repr_markdown_(self) -> str:
        shown, lines = set[str](), list[str]()
        for number, step in enumerate(self.steps, start=1):
            new = [part for part in _written(step.update) if part not in shown]
            shown.update(new)
            lines += [f"**{number} · {step.node}**", *(new or ["*nothing new*"])]
        return "\n\n".join(lines)


def walk(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    question: str,
    settings: Mapping[str, object] | None = None,
) -> Walk:
    """Run a graph, and return every node's update and the final state.

    Parallel branches are listed one after the other, in the order of the graph's nodes, so the same
    run always looks the same.

    Raises:
        SettingsError: a setting is unknown or out of range.
    """
    context: Settings = PaperSettings.model_validate({**(settings or {})})
    stream = graph.stream(
        {"question": question}, context=context, stream_mode=["updates", "values"], subgraphs=True
    )
    steps, state, within = list[Step](), cast("State", {}), set[str]()
    for namespace, mode, chunk in cast("Any", stream):
        above = [name.partition(":")[0] for name in namespace]
        if mode == "updates":
            within.update(above)
            steps += [
                Step(":".join([*above, node]), values_of(update)) for node, update in chunk.items()
            ]
        elif not namespace:
            state = chunk
    order = list(graph.nodes)
    steps = [step for step in steps if step.node not in within]  # Its nodes have the same updates.
    return Walk(sorted(steps, key=lambda step: order.index(step.node.partition(":")[0])), state)


def critique_table(critiques: Sequence[Critique]) -> Table:
    """List candidates in the order of their critiques: text, each critique, and the outcome.

    Candidates in the answer are bold. IsRel, IsSup and the sequence score are in [0, 1], IsUse is
    in [-1, 1]; a missing critique is empty.
    """
    scores = ("relevance", "support", "utility", "sequence", "total")
    rows = [
        (
            one["segment"] + 1,
            "none" if one["passage"] is None else one["passage"] + 1,
            shortened(cleaned(one["text"]), _CANDIDATE),
            *("" if one[name] is None else f"{one[name]:.2f}" for name in scores),
            one["why"],
        )
        for one in cast("Sequence[Mapping[str, Any]]", critiques)
    ]
    chosen = [place for place, one in enumerate(critiques) if one["chosen"]]
    columns = ["segment", "passage", "candidate", *_NUMBERS, "what became of it"]
    return Table(columns, rows, bold=chosen, numeric=_NUMBERS)


def _written(update: Mapping[str, Any]) -> list[str]:
    """Return an update as Markdown, one text for each non-empty key that is worth a look."""
    shown = {**update, **(update.get("reflection") or {})}
    return [f"`{key}` {show(shown[key])}" for key, show in _SHOWN.items() if shown.get(key)]


def _documents(documents: Sequence[Document]) -> str:
    rows = [(one.metadata.get("score"), str(one.metadata.get("title"))) for one in documents]
    best = max((score for score, _ in rows if score is not None), default=None)
    bold = [place for place, (score, _) in enumerate(rows) if score == best is not None]
    return "\n\n" + Table(["score", "document"], rows, bold=bold, numeric=["score"]).markdown


def _strips(strips: Sequence[Strip]) -> str:
    kept = [one for one in strips if one["kept"]]
    rows = [(one["score"], shortened(one["text"], _TEXT), one["source"]["title"]) for one in kept]
    reasons = Counter(one["reason"] for one in strips if not one["kept"])
    dropped = "".join(f", {number} dropped: {why}" for why, number in reasons.items() if why)
    head = f"of the {strips[0]['kind']}: {len(kept)} of {len(strips)} kept{dropped}"
    table = Table(["score", "kept strip", "of"], rows, numeric=["score"]).markdown
    return f"{head}\n\n{table}" if kept else head


def _pages(pages: Sequence[WebPage]) -> str:
    return "; ".join(f"{plain(one['title'])} ({one['status']})" for one in pages)


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "query": plain,
    "documents": _documents,
    "thresholds": lambda one: f"upper {one['upper']:.2f}, lower {one['lower']:.2f}",
    "action": lambda action: f"**{action}**",
    "strips": _strips,
    "pages": _pages,
    "choices": lambda choices: plain(f"{choices[-1]['action']}: {choices[-1]['why']}"),
    "passages": lambda passages: "; ".join(plain(one["title"]) for one in passages),
    "critiques": lambda critiques: f"\n\n{critique_table(critiques).markdown}",
    "answer": plain,
    "events": lambda events: plain("; ".join(f"{one['kind']}: {one['detail']}" for one in events)),
}
