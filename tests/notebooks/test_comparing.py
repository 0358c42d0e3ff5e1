import nbformat
import pytest
from nbformat import NotebookNode

from tests.notebooks.comparing import alike, differences, shown


def notebook(*texts: str, kind: str = "text/plain") -> NotebookNode:
    """Return a notebook of one cell with these outputs, and a picture that differs each time."""
    data = [{kind: text, "image/png": f"bytes of {text}"} for text in texts]
    results = [nbformat.v4.new_output("display_data", data=one) for one in data]  # type: ignore[no-untyped-call]
    cell = nbformat.v4.new_code_cell("1", id="one", outputs=results)  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=[cell])  # type: ignore[no-any-return, no-untyped-call]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("score +0.92", "score +0.93", True),
        ("score −0.92", "score −0.91", True),
        ("score +0.92", "score +0.94", False),
        ("score +0.01", "score -0.01", False),
        ("**-0.97** a", "-0.97 a", True),
        ("2 of 8 strips", "3 of 8 strips", False),
        ("60%", "61%", False),
        ("correct", "ambiguous", False),
        ("0.5 and 0.5", "0.5", False),
    ],
)
def test_only_the_last_digit_may_differ(first: str, second: str, *, same: bool) -> None:
    assert alike(first, second) is same


def test_pictures_are_not_compared_and_their_words_are() -> None:
    assert shown(notebook("a 0.50")) == [("one: text/plain", "a 0.50")]
    assert differences(notebook("a 0.50"), notebook("a 0.51")) == []
    (told,) = differences(notebook("a"), notebook("b"))
    assert told == "one: text/plain\n--- committed\na\n+++ now (one: text/plain)\nb"


def test_a_missing_output_and_another_kind_are_differences() -> None:
    assert len(differences(notebook("a", "b"), notebook("a"))) == 1
    assert len(differences(notebook("a"), notebook("a", kind="text/markdown"))) == 1
