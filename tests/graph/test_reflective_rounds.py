"""The long form round by round in a graph is the long form in one go, whatever the model says."""

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.reflection.driver import Asked
from crag.reflection.long_form import long_form
from crag.reflection_settings import ReflectionSettings
from crag.settings import Settings
from tests.graph.reflective import build_reflect
from tests.reflection.random_tables import OPTIONS, PASSAGES, RandomReflection, found_for
from tests.reflection.scripted import run

KEPT = ("answer", "raw", "cited", "score", "flags", "tokens")


class Finding(BaseRetriever):
    """Find what the search in one go finds."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        found = found_for(query)
        return [Document(passage.text, metadata={"title": passage.title}) for passage in found]


@settings(deadline=None)
@given(st.integers(0, 10**9), OPTIONS, st.sampled_from([None, PASSAGES]), st.booleans())
def test_a_graph_searches_as_the_algorithm_does(
    seed: int, options: ReflectionSettings, passages: Any, searches: bool
) -> None:
    asked = Asked("Who?", "Who?", passages=passages if passages or searches else ())
    alone = options if searches else options.model_copy(update={"segment_retrieval": "static"})
    whole = run(long_form(asked, alone), RandomReflection(seed), found_for)
    graph = build_reflect(RandomReflection(seed), Finding() if searches else None)
    given: Any = {"question": "Who?"}
    if passages:
        given["reflection"] = {"passages": [passage._asdict() for passage in passages]}
    updates = graph.stream(
        given, stream_mode="updates", context=Settings.model_validate(options.model_dump())
    )
    listed = [update for chunk in updates for update in chunk.items()]
    event(f"{len(listed) - 1} rounds")
    assert [node for node, _ in listed] == ["beam_step"] * (len(listed) - 1) + ["finish_reflection"]
    *_, (_, last), _ = listed
    assert {key: last["reflection"][key] for key in KEPT} == {key: whole[key] for key in KEPT}  # type: ignore[literal-required]
    assert last["reflection"]["choices"] == whole["choices"]
    assert last["reflection"]["critiques"] == whole["critiques"]
    read = [{"title": p["title"], "text": p["text"]} for p in last["reflection"]["passages"]]
    assert read == whole["passages"]
