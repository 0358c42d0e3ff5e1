"""Write the generated parts of the documents: `make docs`.

The diagram in README.md comes from the compiled graph, the table in docs/guide/settings.md from the
schema of the settings; a test fails when either is stale.
"""

import re
from pathlib import Path
from typing import Any

from crag.graph import build_crag
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeEvaluator, FakeQuoter, FakeRetriever

ROOT = Path(__file__).parents[1]
_NAMES = {"__start__": "question([question])", "__end__": "answer([answer, citations, trace])"}
_LABELS = {"refine": "correct, ambiguous", "rewrite": "incorrect, ambiguous"}


def diagram() -> str:
    """Return the edges of the compiled graph as a Mermaid block."""
    parts = Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), quoter=FakeQuoter())
    drawn = build_crag(parts).get_graph()
    order = list(drawn.nodes)
    edges = sorted(drawn.edges, key=lambda edge: (order.index(edge.source), edge.target))
    lines = [
        f"    {_NAMES.get(edge.source, edge.source)} "
        + (f"-- {_LABELS[edge.target]} --> " if edge.conditional else "--> ")
        + _NAMES.get(edge.target, edge.target)
        for edge in edges
    ]
    return "```mermaid\ngraph LR\n" + "\n".join(lines) + "\n```\n"


def settings_table() -> str:
    """Return every setting with its default, what is allowed and what it means."""
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_json_schema()["properties"].items():
        default = "none" if field["default"] is None else str(field["default"]).lower()
        meaning = field["description"].replace("|", "or")
        rows.append(f"| `{name}` | {default} | {_allowed(field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _allowed(field: dict[str, Any]) -> str:
    kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    kind = kinds[0]
    if "enum" in kind:
        return ", ".join(kind["enum"])
    if kind["type"] == "boolean":
        return "true, false"
    return f"{kind['minimum']:,} to {kind['maximum']:,}"


PARTS = {
    ROOT / "README.md": ("diagram", diagram),
    ROOT / "docs" / "guide" / "settings.md": ("settings", settings_table),
}


def renewed(path: Path) -> str:
    """Return the text of `path` with its generated part as it should be now."""
    name, write = PARTS[path]
    between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    return between.sub(lambda match: match[1] + write() + match[2], path.read_text("utf-8"))


if __name__ == "__main__":
    for document in PARTS:
        document.write_text(renewed(document), encoding="utf-8")
