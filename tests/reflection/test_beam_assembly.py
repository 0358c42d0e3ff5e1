"""Segments become an answer whose numbers mean the passages that are listed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from crag.papers.experiments.released_search import assemble_released
from crag.reflection.cleaning import cleaned
from crag.reflection_settings import ReflectionSettings
from crag.state import SegmentRecord

RELEASED = ReflectionSettings(compat=frozenset({"released_citations"}))


def segment(
    text: str, passage: int | None = 0, *, irrelevant: bool = False, unsupported: bool = False
) -> SegmentRecord:
    return SegmentRecord(
        text=text,
        shown=cleaned(text),
        passage=passage,
        score=1.0,
        critique=0,
        is_irrelevant=irrelevant,
        is_unsupported=unsupported,
    )


def test_numbers_stand_before_the_full_stop_and_are_reused() -> None:
    segments = [
        segment("[Relevant]One.[Fully supported]", 4),
        segment("Two?!", 2),
        segment("Three", 4),
        segment("Four.", None),
    ]
    found = assemble_released(segments, ReflectionSettings())
    assert found.answer == "One [1]. Two [2]?! Three [1] Four."
    assert found.cited == [4, 2]


def test_what_calls_itself_irrelevant_or_unsupported_cites_nothing() -> None:
    segments = [
        segment("One.", 0, irrelevant=True),
        segment("Two.", 1, unsupported=True),
        segment("Three.", 2),
    ]
    assert assemble_released(segments, ReflectionSettings())[:2] == ("One. Two. Three [1].", [2])
    ignoring = ReflectionSettings(ignore_no_support=True)
    assert assemble_released(segments, ignoring)[:2] == ("One. Three [1].", [2])
    assert assemble_released(segments, RELEASED)[:2] == ("One [1]. Two [2]. Three [3].", [0, 1, 2])


def test_released_numbers_drift_where_a_segment_is_skipped() -> None:
    segments = [segment("One.", 5), segment("One.", 5), segment("Two.", 6)]
    assert assemble_released(segments, RELEASED)[:2] == ("One [1]. Two [3].", [5, 6])
    ours = assemble_released(segments, ReflectionSettings())
    assert ours == ("One [1]. Two [2].", [5, 6], ["repeated_segment"])


def test_the_released_rules_take_any_last_character_for_a_full_stop() -> None:
    assert assemble_released([segment("One")], RELEASED).answer == "On [1]."
    more = segment("One.[Continue to Use Evidence]")
    assert assemble_released([more], RELEASED).answer.startswith("One.[Continue to Use Evidence")


def test_nothing_left_is_flagged() -> None:
    ignoring = ReflectionSettings(ignore_no_support=True)
    assert assemble_released([segment("One.", unsupported=True)], ignoring) == (
        "",
        [],
        ["all_removed"],
    )
    assert assemble_released([], ReflectionSettings()) == ("", [], [])
    assert assemble_released([segment("[Relevant]")], ReflectionSettings()) == ("", [], [])


@given(
    st.lists(
        st.builds(
            segment,
            st.sampled_from(["One.", "Two!", "[3] said", "[Relevant]", "x [1] y.", "[Retrieval]"]),
            st.none() | st.integers(0, 4),
            irrelevant=st.booleans(),
            unsupported=st.booleans(),
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_every_number_is_listed_and_every_listed_passage_is_cited(
    segments: list[SegmentRecord], ignore: bool
) -> None:
    found = assemble_released(segments, ReflectionSettings(ignore_no_support=ignore))
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", found.answer)}
    assert numbers == set(range(1, len(found.cited) + 1))
    assert len(set(found.cited)) == len(found.cited)
