"""How forms show the settings: groups, order and titles.

Studio and the page at `/` build their forms from the JSON schema of the settings, in the order of
its properties. Each property gets a `title`, a `group`, a `level`, and in `langgraph_nodes` the
nodes that read it; Studio also shows it at those nodes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Shown(NamedTuple):
    """What a form shows of one setting besides its description, default and bounds."""

    title: str
    nodes: str
    """The nodes that read it, separated by spaces; nodes within `web` and `reflect` are listed
    under these names. Empty for a setting that only routers read."""


_SELF = "decide prepare_passages reflect"

GROUPS: Mapping[str, Mapping[str, Shown]] = {
    "Task": {
        "task": Shown("Task and its preset", f"web generate {_SELF}"),
    },
    "Retrieval": {
        "k": Shown("Documents to retrieve", "retrieve"),
        "rerank_from": Shown("Documents to rerank", "retrieve"),
        "find_by": Shown("Find by words, meaning or both", "retrieve"),
        "folder": Shown("Only this folder", "retrieve"),
        "kind": Shown("Only this kind of text", "retrieve"),
        "since": Shown("Only files modified since", "retrieve"),
        "until": Shown("Only files modified until", "retrieve"),
        "respell": Shown("Correct typing errors", "retrieve"),
    },
    "Evaluator and action": {
        "upper": Shown("Upper threshold", "grade"),
        "lower": Shown("Lower threshold", "grade"),
        "titles": Shown("Where titles are scored", "grade refine web"),
        "without": Shown("Leave out an action", "grade"),
        "single_threshold": Shown("Threshold without Ambiguous", "grade"),
        "only": Shown("Always take this action", "grade"),
    },
    "Refinement": {
        "refine": Shown("Refine the documents", "refine"),
        "decomposition": Shown("How documents are cut", "refine"),
        "strip_scores": Shown("How strips are scored", "grade refine web"),
        "strip_threshold": Shown("Strip threshold", "refine web"),
        "strips_kept": Shown("Strips to keep", "refine web"),
        "strip_order": Shown("Order of kept strips", "generate prepare_passages"),
    },
    "Web search": {
        "confirm_web": Shown("Ask me before searching", "web"),
        "rewrite": Shown("Rewrite the question into keywords", "web"),
        "web_results": Shown("Search results to use", "web"),
        "wikipedia": Shown("Results from Wikipedia", "web"),
        "read_pages": Shown("Read the pages found", "web"),
        "select": Shown("Filter web text", "web"),
        "obey_robots": Shown("Obey robots.txt", "web"),
        "requests_per_site": Shown("Requests to one site at a time", "web"),
    },
    "Answer": {
        "doubt": Shown("Ask cautiously if strips score low", "generate"),
        "quote_threshold": Shown("Threshold of a sure quotation", "generate reflect"),
        "require_citations": Shown("Require citations", "generate"),
        "allow_own_knowledge": Shown("Allow the model's own knowledge", "generate reflect"),
    },
    "Chat": {
        "contextualize": Shown("Complete follow-up questions", ""),
        "history_messages": Shown("Earlier messages to read", "contextualize"),
    },
    "Reflection": {
        "form": Shown("Form of the answer", _SELF),
        "self_crag_knowledge": Shown("Knowledge for Self-CRAG", "prepare_passages"),
        "ambiguous_text": Shown("Text of Ambiguous knowledge", "prepare_passages"),
        "knowledge_title": Shown("Title of that knowledge", "prepare_passages"),
        "retrieval_mode": Shown("When to retrieve", "decide reflect"),
        "delta": Shown("Retrieve above this share", "decide reflect"),
        "segment_retrieval": Shown("Passages for later segments", "reflect"),
        "weight_relevance": Shown("Weight of relevance", "reflect"),
        "weight_support": Shown("Weight of support", "reflect"),
        "weight_utility": Shown("Weight of usefulness", "reflect"),
        "constraints": Shown("Weigh critiques, or exclude by them", "reflect"),
        "beam_width": Shown("Hypotheses to keep", "reflect"),
        "max_depth": Shown("Most segments of an answer", "reflect"),
    },
    "Budgets": {
        "max_llm_calls": Shown("Model calls", "contextualize web generate"),
        "max_answer_tokens": Shown("Tokens of the answer", "generate"),
        "max_question_characters": Shown("Characters of a question", "open_run contextualize"),
        "max_searches": Shown("Web searches", "web"),
        "max_pages": Shown("Pages to read", "web"),
        "max_web_seconds": Shown("Seconds for the web", "web"),
        "max_web_bytes": Shown("Bytes of all pages", "web"),
        "page_seconds": Shown("Seconds for one page", "web"),
        "page_bytes": Shown("Bytes of one page", "web"),
        "max_paragraphs": Shown("Web paragraphs to judge", "web"),
        "max_new_tokens": Shown("Tokens of a segment", "reflect"),
        "max_reflection_seconds": Shown("Seconds for reflection", "reflect"),
    },
}
"""Groups and their settings, both in the order of the form."""

BASIC = frozenset({
    "k", "find_by", "folder", "kind", "since", "until", "upper", "lower", "confirm_web",
    "web_results", "require_citations", "allow_own_knowledge", "contextualize",
    "max_answer_tokens", "max_llm_calls", "max_searches",
})  # fmt: skip
"""What somebody who asks their documents may want to change."""
ABLATIONS = frozenset({
    "task", "titles", "without", "single_threshold", "only", "refine", "decomposition",
    "strip_scores", "strip_order", "rewrite", "wikipedia", "read_pages", "select",
    "self_crag_knowledge", "ambiguous_text", "knowledge_title",
})  # fmt: skip
"""What the experiments of the papers vary, and what their released code does differently."""


def arrange(schema: dict[str, Any]) -> None:
    """Sort the properties of the settings' JSON schema into the order of the form, in place.

    Descriptions are joined into one line. A setting that is in no group keeps its own title and
    comes last.
    """
    fields: dict[str, dict[str, Any]] = schema["properties"]
    for field in fields.values():
        field["description"] = " ".join(field["description"].split())
    shown = {name: fields[name] | extra for name, extra in _extras() if name in fields}
    unnamed = {name: field for name, field in fields.items() if name not in shown}
    schema["properties"] = shown | unnamed


def _extras() -> Iterator[tuple[str, dict[str, Any]]]:
    for group, settings in GROUPS.items():
        for name, (title, nodes) in settings.items():
            level = "basic" if name in BASIC else "ablations" if name in ABLATIONS else "advanced"
            extra: dict[str, Any] = {"title": title, "group": group, "level": level}
            if nodes:
                extra["langgraph_nodes"] = nodes.split()
            yield name, extra
