"""Write the generated parts of the documents: `make docs`.

The diagram in README.md comes from the compiled graph, its example from the program, the table in
docs/guide/settings.md from the schema of the settings, and langgraph.json from the registry of
graphs. A test fails when any is stale.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crag.cli.ask import NOT_FOUND
from crag.graph import build_crag
from crag.graph_registry import GRAPHS
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeEvaluator, FakeQuoter, FakeRetriever
from tests import commands

ROOT = Path(__file__).parents[1]
_NAMES = {"__start__": "question([question])", "__end__": "answer([answer, citations, trace])"}


def diagram() -> str:
    """Return the edges of the compiled graph as a Mermaid block."""
    parts = Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), quoter=FakeQuoter())
    drawn = build_crag(parts).get_graph()
    order = list(drawn.nodes)
    edges = sorted(drawn.edges, key=lambda edge: (order.index(edge.source), edge.target))
    lines = [
        f"    {_NAMES.get(edge.source, edge.source)} "
        + (f"-- {edge.data} --> " if edge.data else "--> ")
        + _NAMES.get(edge.target, edge.target)
        for edge in edges
    ]
    return "```mermaid\ngraph LR\n" + "\n".join(lines) + "\n```\n"


def settings_table() -> str:
    """Return every setting with its default, what is allowed and what it means."""
    rows = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_json_schema()["properties"].items():
        default = _default(field["default"])
        meaning = field["description"].replace("|", "or")
        rows.append(f"| `{name}` | {default} | {_allowed(field)} | {meaning} |")
    return "\n".join(rows) + "\n"


def _default(value: object) -> str:
    return "none" if value is None else str(value).lower()


def _allowed(field: dict[str, Any]) -> str:
    kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
    kind = kinds[0]
    if "enum" in kind:
        return ", ".join(kind["enum"])
    if kind["type"] == "boolean":
        return "true, false"
    if kind["type"] == "string":
        return "a day" if kind.get("format") == "date" else "text"
    if "exclusiveMinimum" in kind:
        return f"above {kind['exclusiveMinimum']:,}, up to {kind['maximum']:,}"
    return f"{kind['minimum']:,} to {kind['maximum']:,}"


def example() -> str:
    """Return what the example in README.md prints, run here and now."""
    found = re.search(
        r'^\$ make ask Q="(.+)"$', (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert found is not None
    with TemporaryDirectory() as folder:
        crag("index", "docs/guide", "docs/method", "--index", folder)
        return f"```text\n{crag('ask', found[1], '--index', folder)}```\n"


def crag(*arguments: str) -> str:
    """Run the command as a user without keys does, and return what it prints."""
    done = commands.crag(*arguments, folder=ROOT, environment={"COLUMNS": "80"})
    assert done.returncode in {0, NOT_FOUND}, done.stderr
    return done.stdout


def langgraph_json() -> str:
    """Return the text of langgraph.json with the graphs that there are now, open to Studio."""
    served = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    served["graphs"] = {
        name: {"path": f"./graph/studio.py:{name}", "description": entry.description}
        for name, entry in GRAPHS.items()
    }
    return json.dumps(served, indent=2) + "\n"


PARTS: dict[Path, dict[str, Callable[[], str]]] = {
    ROOT / "README.md": {"diagram": diagram, "first example": example},
    ROOT / "docs" / "guide" / "settings.md": {"settings": settings_table},
}


def renewed(path: Path) -> str:
    """Return the text of `path` with its generated parts as they should be now."""
    text = path.read_text("utf-8")
    for name, write in PARTS[path].items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        text = before + begin + write() + end + after
    return text


if __name__ == "__main__":
    for document in PARTS:
        document.write_text(renewed(document), encoding="utf-8")
    (ROOT / "langgraph.json").write_text(langgraph_json(), encoding="utf-8")
