"""What correction changed of the knowledge of plain retrieval."""

from crag.correction.comparison import compare
from crag.state import Source, Strip


def strip(document: str, text: str, *, kept: bool = True) -> Strip:
    source = Source(id=document, title="", url="", position="")
    return Strip(text=text, kind="document", source=source, score=None, kept=kept, reason="")


def test_each_document_is_dropped_shortened_or_left_and_the_web_is_added() -> None:
    plain = {"strips": [strip("a", "One. Two."), strip("b", "Three."), strip("c", "Four.")]}
    corrected = {
        "strips": [
            strip("a", "One."),
            strip("a", "Two.", kept=False),
            strip("b", "Three.", kept=False),
            strip("c", "Four."),
            strip("hit-1", "Five."),
            strip("hit-2", "Six.", kept=False),
        ],
    }
    comparison = compare(plain, corrected)
    assert [one["text"] for one in comparison.dropped] == ["Three."]
    assert [one["text"] for one in comparison.shortened] == ["One. Two."]
    assert [one["text"] for one in comparison.added] == ["Five."]


def test_documents_that_were_not_refined_at_all_are_dropped() -> None:
    comparison = compare({"strips": [strip("a", "One.")]}, {"strips": []})
    assert [one["text"] for one in comparison.dropped] == ["One."]
    assert not [*comparison.shortened, *comparison.added]
