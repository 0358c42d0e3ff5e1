"""An answer must be about the names of the question as it is read, not as it was typed."""

from typing import Any

import pytest
from langchain_core.documents import Document

from crag.graph import build_crag, build_rag, build_self_crag, build_self_rag
from crag.parts import Parts
from crag.testing import (
    FakeChatModel,
    FakeEvaluator,
    FakeQuoter,
    FakeReflection,
    FakeRetriever,
    fake_candidate,
)

DOCUMENTS = [
    Document(
        "Kubernetes starts what fails again. It waits ten seconds before the first restart.",
        metadata={"source": "restarts.md"},
    ),
    Document(
        "PostgreSQL writes checkpoints every five minutes.", metadata={"source": "checkpoints.md"}
    ),
]
WAITS = "It waits ten seconds before the first restart"
WRITES = "PostgreSQL writes checkpoints every five minutes"
MISSPELT = "How long does Kuberntes wait before the first restart?"
"""With a typing error, which the documents correct."""
LONG = (
    "Hello, this is Bob from Acme in Springfield! Our cluster runs on AWS, and we deploy it with "
    "Terraform, Helm and ArgoCD, together with some scripts of our own that Alice wrote long ago. "
    "Could you please tell me how long Kubernetes waits before the first restart? Thanks, Bob"
)


def parts_of(*replies: str) -> Parts:
    return Parts(
        retriever=FakeRetriever(documents=DOCUMENTS),
        evaluator=FakeEvaluator(),
        model=FakeChatModel(replies=list(replies)),
        quoter=FakeQuoter(),
        reflection=FakeReflection(
            lambda _, passage: fake_candidate(f"{WAITS}." if passage else "")
        ),
    )


@pytest.mark.parametrize("build", [build_crag, build_rag, build_self_crag, build_self_rag])
@pytest.mark.parametrize("question", [MISSPELT, LONG])
def test_names_are_those_of_the_question_as_it_is_read(build: Any, question: str) -> None:
    state = build(parts_of(f"{WAITS} [1].")).invoke({"question": question})
    assert state["answer"] == f"{WAITS} [1]."
    assert "uncited_answer" not in [one["kind"] for one in state["events"]]
