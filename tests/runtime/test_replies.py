"""What parts return is counted, and held as plain JSON."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from crag.errors import CragError
from crag.runtime.replies import as_many, documents_of, usage_of


def test_one_result_for_each_input() -> None:
    assert as_many(iter([1, 2]), 2, "evaluator") == [1, 2]
    for wrong in ([], [1], [1, 2, 3]):
        with pytest.raises(CragError, match=rf"evaluator returned {len(wrong)} results for 2"):
            as_many(wrong, 2, "evaluator")


def test_documents_are_cut_and_their_metadata_plain() -> None:
    odd = {"path": Path("a.md"), "share": float("nan"), "tags": {"x"}, 1: "one"}
    (document,) = documents_of([Document("half \ud83d", metadata=odd), Document("b")], 1)
    assert document.page_content == "half \ufffd"
    assert document.metadata == {"path": "a.md", "share": None, "tags": ["x"], "1": "one"}


COUNTED: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}


@pytest.mark.parametrize(
    ("reply", "tokens"),
    [
        ("text", {}),
        (AIMessage("text"), {}),
        (
            AIMessage(
                "a", usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
            ),
            {"input_tokens": 7, "output_tokens": 2},
        ),
    ],
)
def test_tokens_are_counted_where_the_model_counts_them(reply: Any, tokens: Any) -> None:
    assert usage_of(reply) == {"llm_calls": 1, **tokens}
