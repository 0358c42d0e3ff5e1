"""A scripted reflecting model, and views of runs, for the tests of graphs that reflect."""

import json
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from crag.graph import build_reflect as _reflect
from crag.graph import build_self_crag as _self_crag
from crag.graph import build_self_rag as _self_rag
from crag.papers.settings import PaperSettings
from crag.parts import Candidate, Passage, Prefix
from crag.testing import FakeQuoter, FakeReflection, FakeRetriever, fake_candidate

build_self_rag: Any = _self_rag
build_self_crag: Any = _self_crag
build_reflect: Any = _reflect
"""Without the types of what they take, so that tests give what callers from outside give."""
QUESTION = {"question": "Who wrote the first program?"}
WAYS = ["invoke", "astream"]
"""Blocking and awaiting; that all four ways agree is tested in `tests/test_graph_registry.py`."""
OWN = "I think that it was Ada."
_SHARES = {"Lovelace": 0.9, "1843": 0.8}


def says(prefix: Prefix, passage: Passage | None) -> Candidate:
    """Say the first sentence of the passage; those about Lovelace serve best."""
    del prefix
    if passage is None:
        return fake_candidate(f"{OWN}[Utility:4]", relevance=None, support=None, utility=4)
    share = next((share for word, share in _SHARES.items() if word in passage.text), 0.6)
    text = f"[Relevant]{_sentences(passage)[0]}[Fully supported][Utility:5]"
    return fake_candidate(text, relevance=share, support=share)


def goes_on(prefix: Prefix, passage: Passage | None) -> Candidate:
    """Say one sentence of the passage after the other, until there is none left."""
    if passage is None:
        return says(prefix, None)
    place, sentences = prefix.answered.count("[Fully supported]"), _sentences(passage)
    if place >= len(sentences):
        return Candidate("", {}, None, None, 0.0, 0, "end")
    is_last = place == len(sentences) - 1
    share = 0.9 if "Lovelace" in passage.text else 0.6
    return fake_candidate(
        f"[Relevant]{sentences[place]}[Fully supported]{'[Utility:5]' if is_last else ''}",
        relevance=share,
        support=share,
        utility=5 if is_last else None,
        ending="end" if is_last else "retrieve",
    )


def _sentences(passage: Passage) -> list[str]:
    pieces = " ".join(passage.text.replace("; ", " ").split()).split(". ")
    return [piece.strip().rstrip(".") + "." for piece in pieces]


def reflecting(make_parts: Any, candidates: Any = says, score: Any = 0.9, **replaced: Any) -> Any:
    """Return parts whose only model is the fake; the rest is not given as `FakeReflection`'s."""
    known = ("decision", "fails_after")
    scripted = {name: replaced.pop(name) for name in known if name in replaced}
    given = {
        "reflection": FakeReflection(candidates, **scripted),
        "model": None,
        "quoter": FakeQuoter(),
    }
    return make_parts(score, **given | replaced)


def steps(graph: Any, asked: Any = None, **settings: Any) -> list[str]:
    """Return the nodes in the order they wrote in, those within a graph as ``web:read_pages``."""
    streamed = graph.stream(
        asked or QUESTION,
        stream_mode="updates",
        subgraphs=True,
        context=PaperSettings.model_validate(settings),
    )
    return [
        ":".join([*(part.partition(":")[0] for part in inside), node])
        for inside, update in streamed
        for node in update
    ]


async def state_by(way: str, graph: Any, asked: Any = None, **settings: Any) -> dict[str, Any]:
    """Run a graph and return its last state."""
    asked, context = asked or QUESTION, PaperSettings.model_validate(settings)
    state: dict[str, Any] = {}
    match way:
        case "invoke":
            state = graph.invoke(asked, context=context)
        case "ainvoke":
            state = await graph.ainvoke(asked, context=context)
        case "stream":
            *_, state = graph.stream(asked, stream_mode="values", context=context)
        case "astream":
            async for found in graph.astream(asked, stream_mode="values", context=context):
                state = found
    return state


def retrieving(*texts: str) -> FakeRetriever:
    """Return a retriever of these texts, titled T0 on, with sources 0.md on."""
    documents = [
        Document(text, metadata={"title": f"T{place}", "source": f"{place}.md"})
        for place, text in enumerate(texts)
    ]
    return FakeRetriever(documents=documents)


def kinds(state: Any) -> list[str]:
    """Return the kinds of the events."""
    return [entry["kind"] for entry in state["events"]]


def plain(state: Any) -> dict[str, Any]:
    """Return all but documents and messages after a journey through JSON, without times."""
    kept = {key: value for key, value in state.items() if key not in {"documents", "messages"}}
    assert not any(isinstance(value, BaseMessage) for value in kept.values())
    kept["usage"] = {k: v for k, v in kept["usage"].items() if k != "web_milliseconds"}
    travelled: dict[str, Any] = json.loads(json.dumps(kept, allow_nan=False))
    assert travelled == kept
    return travelled
