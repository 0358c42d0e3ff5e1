"""A package adds an evaluator, and `crag.toml` names it."""

from importlib import invalidate_caches
from pathlib import Path

import pytest
from langchain_core.documents import Document

from crag.errors import CragError
from crag.evaluators import load_evaluator
from crag.factory.indexing import choose_encoder
from crag.factory.parts import choose_parts, choose_prompts, choose_reranker
from crag.runtime.environment import Environment
from crag.testing import FakeEvaluator

MODULE = """
from crag.testing import FakeEvaluator
from langchain_core.documents import BaseDocumentCompressor


class Shortest(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return sorted(documents, key=lambda one: len(one.page_content))


def strict():
    return FakeEvaluator(0.25)


def shortest():
    return Shortest()


def wrong():
    return "no part at all"
"""
POINTS = """
[crag.evaluators]
strict = shelf_parts:strict
wrong = shelf_parts:wrong
broken = shelf_parts:missing

[crag.rerankers]
shortest = shelf_parts:shortest
"""


def install(folder: Path, name: str, points: str) -> None:
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(points)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "site"
    install(site, "shelf", POINTS)
    (site / "shelf_parts.py").write_text(MODULE)
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    invalidate_caches()
    return site


def test_crag_toml_names_what_a_package_adds(tmp_path: Path) -> None:
    (tmp_path / "crag.toml").write_text('evaluator = "strict"\n')
    parts = choose_parts(Environment())
    assert isinstance(parts.evaluator, FakeEvaluator)
    assert parts.evaluator.score("?", ["a"]) == [0.25]


def test_the_names_are_told_where_another_is_wrong() -> None:
    with pytest.raises(CragError, match=r"did you mean cosine.*strict"):
        load_evaluator("cosin")


def test_what_is_no_evaluator_is_refused() -> None:
    with pytest.raises(CragError, match="'wrong' makes str, which is no Evaluator"):
        load_evaluator("wrong")


def test_what_cannot_be_imported_names_its_package() -> None:
    with pytest.raises(CragError, match=r"'broken' of shelf cannot be loaded: .*missing"):
        load_evaluator("broken")


def test_a_name_of_two_packages_is_refused(package: Path) -> None:
    install(package, "other", "[crag.evaluators]\nstrict = shelf_parts:strict\n")
    invalidate_caches()
    with pytest.raises(CragError, match=r"added by .*shelf.*: uninstall all but one"):
        load_evaluator("strict")


def test_a_reranker_of_a_package_orders_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_RERANKER", "shortest")
    chosen = Environment()
    reranker = choose_reranker(chosen, choose_encoder(chosen), None, choose_prompts(chosen))
    assert reranker is not None
    found = reranker.compress_documents([Document("longer"), Document("short")], "?")
    assert [one.page_content for one in found] == ["short", "longer"]
