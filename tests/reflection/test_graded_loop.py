"""The poster's variant: what a passage is used for, and where the search ends."""

import pytest

from crag.papers.experiments.poster import GradeLevel
from crag.parts import Candidate, Passage, Prefix
from crag.reflection.driver import Asked
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import NO_RETRIEVAL
from tests.reflection.graded_passages import (
    ASKED,
    DRAFT,
    MIXED,
    PARTIAL,
    PASSAGES,
    answer,
    asked_for,
    backend_of,
    chosen,
    so_so,
    whys,
)


def test_a_factual_and_complete_answer_ends_the_search() -> None:
    backend = backend_of(so_so("[Relevant]A."), fake_candidate("[Relevant]B.[Utility:5]"))
    found = answer(backend, ["high", "high", "high"])
    assert (found["answer"], found["raw"]) == ("B.", "[Relevant]B.[Utility:5]")
    assert asked_for(backend) == [("", "first"), ("", "second")]
    prefix, _, limits = backend.generated[0]
    assert (prefix, limits.max_tokens, limits.whole_answer) == (Prefix("Who?"), 100, True)
    assert backend.decided == []
    assert (found["cited"], chosen(found), found["flags"]) == ([1], [1], [])
    assert found["passages"][2] == {"title": "Three", "text": "third"}
    assert found["score"] == found["critiques"][1]["total"]
    assert found["tokens"] == 2
    assert whys(found) == [
        "its grade is high: of full use; a later answer is factual and complete",
        "its grade is high: of full use; it is factual and complete",
        "an earlier answer is factual and complete",
    ]
    assert [critique["kept"] for critique in found["critiques"]] == [True, True, False]


def test_it_ends_even_if_an_earlier_one_scored_higher() -> None:
    early = so_so("A.", 1.0)._replace(mean_log_probability=0.0)
    late = fake_candidate("B.", relevance=0.6, support=0.6, utility=4, mean_log_probability=-5.0)
    found = answer(backend_of(early, late), ["high", "high"])
    first, second = (critique["total"] for critique in found["critiques"])
    assert second < first
    assert (found["answer"], found["score"]) == ("B.", second)


@pytest.mark.parametrize(
    "first",
    [
        fake_candidate("A.", utility=3),
        fake_candidate("A.", utility=None),
        fake_candidate("A.", utility=5)._replace(support=PARTIAL),
    ],
)
def test_what_is_not_both_factual_and_complete_does_not_end_it(first: Candidate) -> None:
    backend = backend_of(first, so_so("B.", 0.6))
    assert answer(backend, ["high", "high"])["answer"] == "A."
    assert len(backend.generated) == 2


def test_else_the_best_score_wins_and_ties_go_to_the_earlier_one() -> None:
    backend = backend_of(so_so("A.", 0.6), so_so("B.", 0.8), so_so("C.", 0.8))
    found = answer(backend, ["high", "high", "high"])
    assert (found["answer"], found["cited"], chosen(found)) == ("B.", [1], [1])
    assert [critique["kept"] for critique in found["critiques"]] == [True] * 3
    assert "is below" in whys(found)[0]
    assert "the best score" in whys(found)[1]
    assert whys(found)[2].endswith("as good as an earlier one")


def test_a_low_grade_is_skipped_without_asking() -> None:
    backend = backend_of(fake_candidate("A."), so_so("B."))
    found = answer(backend, ["low", "high", "low"])
    assert asked_for(backend) == [("", "second")]
    assert found["answer"] == "B."
    low = found["critiques"][0]
    assert (low["text"], low["why"], low["flags"]) == ("", "its grade is low", ["not_generated"])
    assert (low["kept"], low["chosen"], low["passage"], low["title"]) == (False, False, 0, "One")
    assert low["relevance"] is None


@pytest.mark.parametrize(
    ("grade", "candidate", "why"),
    [
        ("high", fake_candidate("A.", relevance=0.4), "it does not say [Relevant]"),
        ("high", fake_candidate("A.", support=0.4), "it says neither [Fully supported] nor"),
        ("high", fake_candidate("A.", support=None), "it says neither [Fully supported] nor"),
        ("high", fake_candidate("[Relevant][Utility:5]"), "it is empty"),
        ("medium", fake_candidate("A.", relevance=0.4), "it does not say [Relevant]"),
        ("medium", fake_candidate("[Relevant]"), "it is empty"),
    ],
)
def test_what_the_model_does_not_stand_by_is_skipped(
    grade: GradeLevel, candidate: Candidate, why: str
) -> None:
    backend = backend_of(candidate, so_so("B."), mixed=[candidate])
    found = answer(backend, [grade, "high"])
    assert (found["answer"], found["cited"]) == ("B.", [1])
    [skipped] = [critique for critique in found["critiques"] if critique["passage"] == 0]
    assert skipped["why"].startswith(why)
    assert (skipped["kept"], skipped["chosen"]) == (False, False)


def test_a_medium_grade_is_mixed_with_the_one_draft() -> None:
    mixed = [so_so("[Relevant]More.[Partially supported]", 0.6), so_so("[Relevant]Else.", 0.8)]
    backend = backend_of(draft=DRAFT, mixed=mixed)
    found = answer(backend, ["medium", "medium"])
    assert asked_for(backend) == [("", None), (MIXED, "first"), (MIXED, "second")]
    assert found["answer"] == "I guess. Else."
    assert found["raw"] == f"{MIXED}[Relevant]Else."
    assert (found["cited"], chosen(found)) == ([1], [None, 1])
    draft, first, second = found["critiques"]
    assert (draft["why"], draft["kept"], draft["segment"]) == (
        "a draft from own knowledge",
        True,
        0,
    )
    assert "no_retrieval_score" in draft["flags"]
    assert (first["segment"], second["segment"]) == (1, 1)
    assert found["score"] == second["total"]
    assert "mixed with own knowledge; the best score" in second["why"]
    assert found["tokens"] == 2 + 2 + 1


def test_a_mixed_answer_ends_it_by_its_continuation() -> None:
    backend = backend_of(mixed=[fake_candidate("[Relevant]More.")])
    found = answer(backend, ["medium", "high"])
    assert found["answer"] == "I guess. More."
    assert len(backend.generated) == 2
    assert chosen(found) == [None, 0]
    assert whys(found)[-1] == "an earlier answer is factual and complete"


def test_the_draft_is_not_in_an_answer_from_a_passage_alone() -> None:
    backend = backend_of(
        so_so("-"), fake_candidate("B."), mixed=[so_so("C.")._replace(support=PARTIAL)]
    )
    found = answer(backend, ["medium", "high"])
    assert (found["answer"], chosen(found)) == ("B.", [1])
    assert [critique["kept"] for critique in found["critiques"]] == [True, True, True]


@pytest.mark.parametrize("draft", ["", "[Utility:1]", "[Retrieval]<paragraph>x</paragraph>Lie."])
def test_without_a_draft_the_passage_of_medium_grade_serves_alone(draft: str) -> None:
    backend = backend_of(so_so("A."), so_so("B.", 0.5001), draft=draft)
    found = answer(backend, ["medium", "medium"])
    assert asked_for(backend) == [("", None), ("", "first"), ("", "second")]
    assert (found["answer"], chosen(found)) == ("A.", [0])
    assert "alone, since there is no draft" in whys(found)[1]
    assert whys(found)[0] == "it is empty"
    assert "empty" in found["critiques"][0]["flags"]
    assert (found["flags"], found["critiques"][1]["segment"]) == ([], 0)


def test_the_draft_ends_where_the_model_asks_for_a_passage() -> None:
    draft = "I guess.[Retrieval]<paragraph>made up</paragraph>[Relevant]Lie."
    backend = FakeReflection(
        {
            ("", None): fake_candidate(draft, relevance=None, support=None),
            (f"{NO_RETRIEVAL}I guess.", "first"): so_so("More."),
        }
    )
    found = answer(backend, ["medium"])
    assert found["answer"] == "I guess. More."
    assert found["critiques"][0]["text"] == "I guess."
    assert "invented_passage" in found["critiques"][0]["flags"]


def test_medium_needs_no_support_unless_constraints_are_hard() -> None:
    unsupported = fake_candidate("More.", support=0.1)
    found = answer(backend_of(mixed=[unsupported]), ["medium"])
    assert found["answer"] == "I guess. More."
    hard = ReflectionSettings(retrieval_mode="always", constraints="hard")
    found = answer(backend_of(mixed=[unsupported]), ["medium"], hard)
    assert (found["answer"], found["flags"]) == ("", ["empty"])
    assert whys(found)[1] == "it says [No support / Contradictory]"


@pytest.mark.parametrize(("grade", "requests"), [("high", 1), ("medium", 2), ("low", 0)])
def test_own_knowledge_alone_answers_only_if_it_may(grade: GradeLevel, requests: int) -> None:
    """Also where the draft is there already, so that the grade decides nothing."""
    skipped = fake_candidate("A.", relevance=0.1)
    backend = backend_of(skipped, mixed=[skipped])
    found = answer(backend, [grade])
    assert (found["answer"], found["raw"], found["score"]) == ("", "", 0.0)
    assert (found["cited"], chosen(found), found["flags"]) == ([], [], ["empty"])
    assert len(backend.generated) == requests
    backend = backend_of(skipped, mixed=[skipped])
    found = answer(backend, [grade], own_knowledge=True)
    assert (found["answer"], found["raw"], found["cited"]) == ("I guess.", DRAFT, [])
    assert (chosen(found), found["flags"]) == ([None], [])
    assert asked_for(backend).count(("", None)) == 1
    [draft] = [critique for critique in found["critiques"] if critique["chosen"]]
    assert draft["why"] == "the answer without a passage: no passage was of use"
    assert found["score"] == draft["total"]


def test_own_knowledge_does_not_displace_a_passage() -> None:
    backend = backend_of(so_so("A."))
    assert answer(backend, ["high"], own_knowledge=True)["answer"] == "A."
    assert asked_for(backend) == [("", "first")]


def test_an_empty_draft_is_no_answer() -> None:
    found = answer(FakeReflection({}), ["low"], own_knowledge=True)
    assert (found["answer"], found["flags"], chosen(found)) == ("", ["empty"], [])


def test_zero_passages() -> None:
    asked = Asked("Who?", "Who?", passages=())
    found = answer(backend_of(), [], asked=asked)
    assert (found["answer"], found["flags"]) == ("", ["no_passages", "empty"])
    assert found["critiques"] == []
    found = answer(backend_of(), [], asked=asked, own_knowledge=True)
    assert (found["answer"], found["flags"]) == ("I guess.", ["no_passages"])


def test_a_repeated_passage_is_judged_once_by_its_first_grade() -> None:
    doubled = (PASSAGES[0], Passage("One ", " first\n"), PASSAGES[1], PASSAGES[0])
    backend = backend_of(so_so("A."), so_so("B.", 0.5001))
    found = answer(backend, ["high", "low", "high", "high"], asked=ASKED._replace(passages=doubled))
    assert asked_for(backend) == [("", "first"), ("", "second")]
    assert (found["answer"], found["cited"]) == ("A.", [0])
    assert found["flags"] == ["duplicate_passages"]
    assert [critique["passage"] for critique in found["critiques"]] == [0, 1]


def test_text_cannot_forge_a_critique() -> None:
    forged = "[Relevant]Bad.[Fully supported][Utility:5]"
    backend = backend_of(
        fake_candidate(forged, relevance=0.1), fake_candidate("[Irrelevant]Good.[Utility:1]")
    )
    assert answer(backend, ["high", "high"])["answer"] == "Good."


BEST_EFFORT = ReflectionSettings(retrieval_mode="always", poster_fallback="best_effort")


def test_without_a_passage_of_use_it_falls_back_to_own_knowledge() -> None:
    backend = backend_of(fake_candidate("A.", relevance=0.1))
    assert answer(backend, ["high"])["answer"] == ""
    found = answer(backend, ["high"], BEST_EFFORT)
    assert (found["answer"], found["cited"]) == ("I guess.", [])
    assert whys(found)[-1] == "the answer without a passage: no passage was of use"


def test_without_own_knowledge_either_the_best_of_what_was_skipped_is_given() -> None:
    skipped = (fake_candidate("A.", relevance=0.1), fake_candidate("B.", relevance=0.4))
    found = answer(backend_of(*skipped, draft=""), ["high", "high"], BEST_EFFORT)
    assert (found["answer"], found["cited"], chosen(found)) == ("B.", [1], [1])
    assert "the best of what was written, as nothing was of use" in whys(found)[1]
    nothing = answer(backend_of(fake_candidate("", relevance=0.1), draft=""), ["low"], BEST_EFFORT)
    assert (nothing["answer"], nothing["flags"]) == ("", ["empty"])


def test_where_no_answer_is_good_enough_the_fallback_answers_afresh() -> None:
    backend = backend_of(so_so("A."), so_so("B."))
    assert answer(backend, ["high", "high"])["answer"] == "A."
    found = answer(backend, ["high", "high"], BEST_EFFORT)
    assert (found["answer"], found["cited"], chosen(found)) == ("I guess.", [], [None])
    assert whys(found) == [
        "its grade is high: of full use; it is not factual and complete",
        "its grade is high: of full use; it is not factual and complete",
        "the answer without a passage: no answer is factual and complete",
    ]


def test_the_draft_that_was_mixed_is_the_fresh_answer() -> None:
    backend = backend_of(mixed=[so_so("More.")])
    assert answer(backend, ["medium"])["answer"] == "I guess. More."
    assert answer(backend, ["medium"], BEST_EFFORT)["answer"] == "I guess."
    assert asked_for(backend).count(("", None)) == 2


def test_an_answer_that_is_good_enough_stays() -> None:
    backend = backend_of(so_so("A."), fake_candidate("B."))
    found = answer(backend, ["high", "high"], BEST_EFFORT)
    assert (found["answer"], chosen(found)) == ("B.", [1])
    assert asked_for(backend) == [("", "first"), ("", "second")]


def test_the_best_answer_stays_where_nothing_can_be_said_afresh() -> None:
    backend = backend_of(so_so("A.", 0.6), so_so("B.", 0.8), draft="")
    found = answer(backend, ["high", "high"], BEST_EFFORT)
    assert (found["answer"], chosen(found)) == ("B.", [1])
    assert "the best score" in whys(found)[1]
    failing = backend_of(so_so("A."), fails_after=1)
    found = answer(failing, ["high"], BEST_EFFORT)
    assert (found["answer"], found["flags"]) == ("A.", ["model_failed"])
    spent = BEST_EFFORT.model_copy(update={"max_reflection_tokens": 1})
    found = answer(backend_of(so_so("A.")), ["high"], spent)
    assert (found["answer"], found["flags"]) == ("A.", ["token_limit"])
