import sys
from types import ModuleType

import pytest

from crag.papers.metrics.sentences import nltk_sentences, sentences


def test_sentences_keep_their_citations_and_lose_surrounding_space() -> None:
    text = " It rained in St. Ives [1].  It was 3.5 mm. [2] Why? "
    assert sentences(text) == ["It rained in St. Ives [1].", "It was 3.5 mm. [2]", "Why?"]
    assert sentences(" ") == []


def test_the_official_sentences_are_those_of_nltk(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = ModuleType("nltk")
    nltk.sent_tokenize = lambda text: iter(text.split("|"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nltk", nltk)
    assert nltk_sentences("One.|Two.") == ["One.", "Two."]
