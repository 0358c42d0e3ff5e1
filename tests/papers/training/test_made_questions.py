"""Questions made of an index by rule."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crag.index import DocumentIndex, index_paths
from crag.models.encoder import packaged_encoder
from crag.papers.training.made_questions import (
    MadeQuestion,
    far_questions,
    first_sentence,
    question_of_heading,
    question_of_sentence,
    questions_of,
)

MORE = " The handle is cold, the lid is heavy and the shop is open from nine until late." * 10
"""So much that the next section stands in a chunk of its own."""
PAGE = f"""# Filters

The default size of the pool is only 40 tokens.{MORE}

## How to change a filter

To change a filter, open the lid and pull the handle.{MORE}

## Wear

It is thin.{MORE}
"""
OTHER = """# Hoses

## How to change a filter

Filters and hoses are sold together in most shops of the town.
"""


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        ("How to install from source", "How do I install from source?"),
        ("3.1 Installing the server", "How does installing the server work?"),
        ("Configure your proxy", "How do I configure my proxy?"),
        ("Concurrency limitations", "What are concurrency limitations?"),
        ("`TestClient` options", "What are TestClient options?"),
        ("Why not Docopt?", "Why not Docopt?"),
        ("Options", ""),
        ("Größe der Dateien", ""),
    ],
)
def test_a_heading_is_asked_for(heading: str, question: str) -> None:
    assert question_of_heading(heading) == question


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("The pool of threads is only 40 tokens wide.", "What is the pool of threads?"),
        ("Receipts of travel are kept for six years.", "What are receipts of travel?"),
        ("To clear your screen, you can use this function.", "How do I clear my screen?"),
        ("If you want to stop the server, press both keys.", "How do I stop the server?"),
        ("You can read the body twice by caching it first.", "How can I read the body twice?"),
        (
            "Use a template to answer your customers in time.",
            "How do I answer my customers in time?",
        ),
        ("When you are late, the report waits a day.", "What happens when I am late?"),
        ("Support for this is given by another decorator.", ""),
        ("This is what everybody wants to know today.", ""),
        ("The pool is small.", ""),
    ],
)
def test_a_sentence_answers_the_question_made_of_it(sentence: str, question: str) -> None:
    assert question_of_sentence(sentence) == question


def test_the_first_sentence_is_one_of_prose() -> None:
    assert first_sentence("# Title\n\n- item\n\nThe lid is open. It shuts.") == "The lid is open."
    assert first_sentence("| a | b |\n|---|---|\n| 1 | 2 |") == ""
    assert first_sentence("Der Deckel des Filters ist schon seit gestern offen.") == ""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentIndex]:
    folder = tmp_path_factory.mktemp("made")
    pages = {"filters.md": PAGE, "hoses.md": OTHER}
    for name, text in pages.items():
        (folder / name).write_text(text)
    with DocumentIndex(folder / "index", packaged_encoder()) as index:
        index_paths([folder / name for name in pages], index)
        yield index


def test_questions_are_made_of_sections_and_know_them(index: DocumentIndex) -> None:
    made = questions_of(index, 9, "answered")
    assert made == questions_of(index, 9, "answered")
    by_question = {one.question: one for one in made}
    assert "What is the default size of the pool?" in by_question
    pool = by_question["What is the default size of the pool?"]
    assert pool.sentence == "The default size of the pool is only 40 tokens."
    assert Path(pool.source).name == "filters.md"
    # Both pages have the heading, so that only the sentence beneath it can be asked for.
    assert {one.sentence for one in made if "change a filter" in one.question} <= {
        "To change a filter, open the lid and pull the handle."
    }
    assert len(questions_of(index, 1, "near")) == 1


def test_a_question_is_of_its_section_and_those_beneath() -> None:
    made = MadeQuestion("?", "near", "a.md", "Use > Proxies")
    assert made.is_of({"source": "a.md", "section": "Use > Proxies"})
    assert made.is_of({"source": "a.md", "section": "Use > Proxies > Login"})
    assert not made.is_of({"source": "a.md", "section": "Use > Proxies of others"})
    assert not made.is_of({"source": "a.md", "section": "Use"})
    assert not made.is_of({"source": "b.md", "section": "Use > Proxies"})
    assert made._replace(section="").is_of({"source": "a.md", "section": "Use"})


def test_what_says_the_same_elsewhere_is_a_repetition() -> None:
    made = MadeQuestion("?", "near", "a.md", "Use > Proxies", "Proxies are set by one variable.")
    assert made.repeated_in("So: proxies are set by one variable, or two.", "")
    assert not made.repeated_in("Proxies need a login.", "Proxies")
    assert made._replace(sentence="").repeated_in("Proxies need a login.", "Other > Proxies")


def test_far_questions_are_drawn_by_seed() -> None:
    assert far_questions(5, 1) == far_questions(5, 1) != far_questions(5, 2)
    assert {one.kind for one in far_questions(5)} == {"far"}
    assert len({one.question for one in far_questions(1000)}) == 60
