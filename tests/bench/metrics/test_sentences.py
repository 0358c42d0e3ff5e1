from crag.bench.metrics.sentences import sentences


def test_sentences_keep_their_citations_and_lose_surrounding_space() -> None:
    text = " It rained in St. Ives [1].  It was 3.5 mm. [2] Why? "
    assert sentences(text) == ["It rained in St. Ives [1].", "It was 3.5 mm. [2]", "Why?"]
    assert sentences(" ") == []
