"""Documents in other languages: chunks, and the warning of an embedding model."""

from pathlib import Path

from crag.documents.chunks import split
from crag.index import DocumentIndex, index_paths
from tests.documents.reading import plain_document
from tests.index.conftest import CountingEmbeddings

ENGLISH = "The notice period is four weeks. After that, the contract ends."
GERMAN = "Die Frist für eine Kündigung beträgt vier Wochen. Danach endet der Vertrag."
FRENCH = "Le délai de préavis est de quatre semaines. Ensuite le contrat prend fin."


def test_a_model_that_does_not_read_the_documents_is_warned_about(
    folder: Path, index: DocumentIndex, embeddings: CountingEmbeddings
) -> None:
    embeddings.languages = frozenset({"en"})  # type: ignore[attr-defined]
    for name, text in {"a": GERMAN, "b": f"{GERMAN} Ja.", "c": FRENCH, "d": ENGLISH}.items():
        (folder / f"{name}.txt").write_text(text)
    (folder / "e.txt").write_text("Ja.")
    (folder / "f.py").write_text(f"# {GERMAN}\n")
    report = index_paths([folder], index)
    assert report.languages == {"de": 2, "fr": 1}
    assert report.language_warning.startswith(
        "the embedding model does not read the language of 3 of 6 documents (German 2, French 1):"
    )
    again = index_paths([folder], index)
    assert (again.unchanged, again.languages, again.language_warning) == (6, {}, "")


def chunks(text: str) -> list[str]:
    document = plain_document("/a.txt", text)
    return [chunk.page_content for chunk in split(document, "/")]


def test_chunks_of_other_alphabets_are_as_long_as_those_of_english() -> None:
    russian = chunks("Срок расторжения договора составляет четыре недели после уведомления. " * 60)
    chinese = chunks("合同解除的期限为四周。" * 200)
    assert 700 < max(map(len, russian)) <= 1000
    assert 200 < max(map(len, chinese)) <= 250
