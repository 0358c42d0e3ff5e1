"""What is found first: short notes beside much of one kind, and exact names."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.index import DocumentIndex, index_paths, open_index
from crag.index.ranking import Passage, Weight, scored, terms_of
from crag.models.encoder import packaged_encoder
from tests.repeating import times

NOTES = {
    "The barn is let in summer for 300 euros.": "When is the barn let?",
    "The pool is closed in May.": "When is the pool closed?",
    "The tower has 312 steps.": "How many steps does the tower have?",
    "The sauna is heated on Thursdays.": "On which day is the sauna heated?",
    "The last ferry leaves at nine in the evening.": "When does the last ferry leave?",
    "Flour from the mill is sold at the gate.": "Where is the flour sold?",
    "Stamps are sold at the kiosk.": "Where can I buy stamps?",
    "The roof was repaired by Ada Quill.": "Who repaired the roof?",
    "Boats over twelve metres may not moor at the quay.": "How long may boats at the quay be?",
    "The north gate is locked at dusk.": "When is the north gate locked?",
}
PLACES = ("pool", "barn", "tower", "gate", "quay", "mill")
RIGHTS = "Copyright of the Eastbank Society. Redistribution needs written permission of the board. "
LICENCE = "The software is provided as is, without warranty of any kind, express or implied. "
draw = random.Random(3)  # noqa: S311 - any will do


def paragraphs(folder: Path) -> None:
    (folder / "rights.txt").write_text("\n\n".join([RIGHTS * 8] * 300))


def rows(folder: Path) -> None:
    lines = [f"Ann {draw.randrange(9)},Friday {n},{draw.choice(PLACES)},{n}" for n in range(200)]
    (folder / "r.csv").write_text("\n".join(["name,day,place,amount", *lines]))


def log(folder: Path) -> None:
    said = ("gate opened", "gate closed", "pool pump started", "ferry signal received")
    lines = [
        f"2024-03-{1 + n % 28:02} {n % 24:02}:11 INFO {draw.choice(said)} in {n} ms"
        for n in range(times(400, 6000))
    ]
    (folder / "app.log").write_text("\n".join(lines))


def licences(folder: Path) -> None:
    for number in range(times(12, 60)):
        text = f"# Licence of part {number}\n\n{LICENCE * 8}"
        (folder / f"licence-{number}.md").write_text(text)


@pytest.mark.parametrize("much", [paragraphs, rows, log, licences])
def test_short_notes_are_found_first_beside_much_of_one_kind(
    tmp_path: Path, folder: Path, much: Callable[[Path], None]
) -> None:
    much(folder)
    for number, note in enumerate(NOTES):
        (folder / f"note-{number}.md").write_text(f"# Note\n\n{note}\n")
    encoder = packaged_encoder()
    index_paths([folder], open_index(tmp_path / "index", encoder))
    answers = []
    for _ in range(2):
        with open_index(tmp_path / "index", encoder) as index:
            answers.append([index.search(question, 10) for question in NOTES.values()])
    assert answers[0] == answers[1]
    for note, found in zip(NOTES, answers[0], strict=True):
        texts = [chunk.page_content for chunk in found]
        assert note in texts[0]
        assert len(set(texts)) == len(texts), "equal texts are shown once"


CODES = [f"E{4000 + 7 * number}" for number in range(60)]
EXACT = {
    "What is {}?": "{} means that the service lost the socket. Restart the worker.",
    "We see {} whenever the import of addresses runs late, and the socket of the worker is lost. "
    "What should we do?": "Code {}. The service failed to read a record.",
    "our worker shows {} since yesterday": "{}: the region is full",
    'What should I do when I see "lost the socket of {}"?': "Wait if it lost the socket of {}.",
}


@pytest.mark.parametrize("question", EXACT)
@pytest.mark.parametrize("by", ["both", "words"])
def test_an_exact_name_wins_whatever_is_near_in_meaning(
    folder: Path, index: DocumentIndex, question: str, by: Any
) -> None:
    """Vectors are random; one text has all other words of the questions."""
    for code in CODES:
        (folder / f"{code}x.txt").write_text(EXACT[question].format(code))
    everything = question.replace("{}", "it") * 2
    (folder / "all.md").write_text(f"The import runs on Fridays. {everything}")
    index_paths([folder], index)
    for code in CODES[::6]:
        for asked in (question.format(code), question.format(code.lower())):
            assert code in index.search(asked, 3, by=by)[0].page_content


def test_few_texts_that_differ_in_numbers_alone_are_among_the_first(
    folder: Path, index: DocumentIndex
) -> None:
    for number in range(120):
        (folder / f"{number}.txt").write_text(f"Pump {number} was started at {number}:00.")
    for number in range(8):
        (folder / f"other-{number}.txt").write_text(f"The pump of {'abcdefgh'[number] * 5} rests.")
    index_paths([folder], index)
    found = index.search("When was the pump started?", 10)
    assert sum("started" in chunk.page_content for chunk in found) == 3
    assert "Pump 17 " in index.search("When was pump 17 started?", 5)[0].page_content
    assert len(index.search("pump", 30)) == 30, "the others come after them"


def test_what_is_quoted_is_one_phrase() -> None:
    assert terms_of("Who said “out of range”, or `no_such`?") == [
        ("said",), ("rang",), ("no_such",),
        ("out", "of", "rang"), ("no_such", "no", "such"),
    ]  # fmt: skip
    assert terms_of('the "socket"') == [("socket",)]


def test_a_score_adds_meaning_words_and_names() -> None:
    passages = [
        Passage(1, "Mill", "The mill stands.", 0.9),
        Passage(2, "", "Wheel of the mill: wheel", 0.5),
        Passage(3, "", "Rain", 0.1),
    ]
    weights = {("mill",): Weight(2, 0), ("wheel",): Weight(1, 0.4), ("of", "the"): Weight(1, 0.7)}
    assert scored(passages, weights, 1.0) == pytest.approx({1: 1.369822, 2: 3.025006, 3: 0})
    assert scored(passages, {}, 0.5) == pytest.approx({1: 0.5, 2: 0.25, 3: 0})
    assert scored(passages[2:], {("rain",): Weight(3, 0)}, 1.0) == pytest.approx({3: 1.25 / 2.2})
    many = scored([Passage(n, "", "", n / 100) for n in range(60)], {}, 1.0)
    assert (many[5], many[35], many[59]) == pytest.approx((0, 25 / 49, 1))
    assert scored([], weights, 1.0) == {}
