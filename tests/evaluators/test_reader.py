"""The reader that ships: what it reads, where it says it stands, and that nothing is cut off."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crag.evaluators.reader import ReaderEvaluator
from crag.models.reading_model import MOST_WINDOWS
from crag.papers.evaluator.evidence import quality
from crag.papers.evaluator.pairs import by_question, read_pairs
from crag.parts import Passage
from crag.reading import Reading, evidence_in, shares_of

QUESTION = "How long do sessions last?"
ANSWER = "A session expires after two weeks unless it is renewed."
OTHER = "The server listens on port 8000 and writes its log to standard error."
FILLER = "The colour of the button follows the theme that was chosen by the administrator. "
ODD = [
    "",
    "   ",
    "🙂 🙃",
    "東京は日本の首都です。",
    "Ωμέγα и кириллица",
    "\x00",
    "é" * 50,
    "\ud83d",
]


@pytest.fixture(scope="module")
def reader() -> ReaderEvaluator:
    return ReaderEvaluator.packaged()


def one(reader: ReaderEvaluator, text: str, title: str = "") -> Reading:
    (reading,) = reader.read(QUESTION, [Passage(title, text)])
    return reading


def test_evidence_and_span_are_where_the_answer_stands(reader: ReaderEvaluator) -> None:
    text = f"{OTHER} {ANSWER} {FILLER}"
    reading = one(reader, text, "Sessions")
    start = text.index(ANSWER)
    inside = evidence_in(reading, start, start + len(ANSWER))
    assert inside > 1.5 * evidence_in(reading, 0, len(OTHER))
    assert reading["span"] is not None
    assert "two weeks" in text[reading["span"]["start"] : reading["span"]["end"]]


def test_a_long_passage_is_read_to_its_end(reader: ReaderEvaluator) -> None:
    text = FILLER * 60 + ANSWER + " " + FILLER * 60
    reading = one(reader, text)
    start = text.index(ANSWER)
    assert reading["span"] is not None
    assert start <= reading["span"]["start"] < reading["span"]["end"] <= start + len(ANSWER)
    assert evidence_in(reading, start, start + len(ANSWER)) > 5 * evidence_in(reading, 0, start)
    assert reading["score"] == pytest.approx(one(reader, ANSWER)["score"], abs=0.5)


def test_of_a_very_long_passage_the_windows_near_the_question_are_read(
    reader: ReaderEvaluator,
) -> None:
    answer = "Sessions last for two weeks."
    text = FILLER * 900 + answer + " " + FILLER * 900
    assert len(reader.model.views([(QUESTION, Passage("", text))])[0]) == MOST_WINDOWS
    reading = one(reader, text)
    start = text.index(answer)
    assert reading["span"] is not None
    assert start <= reading["span"]["start"] < reading["span"]["end"] <= start + len(answer)
    middle = len(FILLER) * 700
    assert evidence_in(reading, middle, middle + 500) == 0
    assert evidence_in(reading, len(text) - 500, len(text)) == 0
    assert evidence_in(reading, start, start + len(answer)) > 0.1


@pytest.mark.parametrize("ending", ["", " ", "?\n"])
def test_a_question_is_read_alike_without_its_mark(reader: ReaderEvaluator, ending: str) -> None:
    passages = [Passage("Kettle", "The kettle boils in three minutes."), Passage("Tea", "Tea.")]
    asked = "How long does the kettle take"
    assert reader.read(f"{asked}{ending}", passages) == reader.read(f"{asked}?", passages)
    assert reader.read(f"{asked}.", passages) != reader.read(f"{asked}?", passages)


def test_a_text_of_like_meaning_is_more_similar(reader: ReaderEvaluator) -> None:
    about, other = reader.similarity("When is the barn let?", ["The barn is let.", "Use a mop."])
    assert 1 > about > other + 0.3


def test_score_reads_a_title_before_the_text(reader: ReaderEvaluator) -> None:
    (reading,) = reader.read(QUESTION, [Passage("Sessions", ANSWER)])
    assert reader.score(QUESTION, [f"Sessions // {ANSWER}"]) == [
        pytest.approx(reading["score"], abs=1e-5)
    ]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.one_of(
            st.sampled_from([*ODD, "naïve", "unbelievably-long-hyphenated", "`code`", "|", "ﬁn"]),
            st.text(max_size=12),
        ),
        max_size=40,
    )
)
def test_offsets_are_those_of_the_text(reader: ReaderEvaluator, words: list[str]) -> None:
    text = " ".join(words)
    reading = one(reader, text)
    assert -1 <= reading["score"] <= 1
    starts = [start for start, _ in shares_of(reading)]
    assert starts == sorted(set(starts))
    assert all(0 <= start < max(1, len(text)) for start in starts)
    assert all(0 <= share <= 100 for _, share in shares_of(reading))
    if text.strip():
        assert starts[0] == 0
    span = reading["span"]
    if span is not None:
        piece = text[span["start"] : span["end"]]
        assert piece
        assert piece == piece.strip()


@pytest.mark.parametrize("text", ["\u200b", "\x00", "\u0301"])
def test_a_text_without_anything_to_read_holds_no_answer(
    reader: ReaderEvaluator, text: str
) -> None:
    nothing = {"score": -1.0, "evidence": "0:0", "span": None}
    assert one(reader, text) == nothing


@pytest.mark.data
@pytest.mark.parametrize("name", ["evaluator/dev_popqa_retr", "qa/popqa_dev"])
def test_the_card_holds_on_development_data(reader: ReaderEvaluator, data: Path, name: str) -> None:
    """On every fifth question; `make test-data PROFILE=nightly` takes all, compared closely."""
    all_of_them = settings.get_current_profile_name() == "nightly"
    grouped = by_question(read_pairs(data / f"{name}.jsonl"))
    questions = list(grouped)[:: 1 if all_of_them else 5]
    pairs = [pair for question in questions for pair in grouped[question]]
    asked = [(pair.question, Passage(pair.title, pair.text)) for pair in pairs]
    found, said = quality(pairs, reader.score_pairs(asked)), reader.card.metrics[Path(name).stem]
    names = found.keys() & said.keys() if all_of_them else {"auc"}
    assert {one: found[one] for one in names} == pytest.approx(
        {one: said[one] for one in names}, abs=0.01 if all_of_them else 0.03
    )
