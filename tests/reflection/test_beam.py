"""Long form: every step of the search, and the released faults that are gone."""

import math

import pytest

from crag.parts import Decision, Prefix
from crag.reflection.long_form import long_form
from crag.reflection.testing import FakeReflection, Table, fake_decision
from crag.reflection_settings import ReflectionSettings
from tests.reflection.scripted import (
    ASKED,
    LEAKED,
    MORE,
    NO,
    ONE,
    TREE,
    TWO,
    YES,
    Searching,
    adaptive,
    answer,
    contexts,
    last,
    options_of,
    part,
    run,
    unsupported,
)


def test_segments_are_searched_and_assembled() -> None:
    backend = FakeReflection(TREE)
    found = answer(backend, options_of())
    assert found["answer"] == "B [1]. B1 [2]."
    assert found["cited"] == [1, 0]
    assert found["raw"] == "[Relevant]B.B1."
    assert found["flags"] == []
    assert contexts(backend) == ["", "[Relevant]A.", "[Relevant]B."]
    assert [passages for _, passages, _ in backend.generated] == [(ONE, TWO)] * 3
    assert not any(limits.whole_answer for _, _, limits in backend.generated)
    chosen = [c["text"] for c in found["critiques"] if c["chosen"]]
    assert chosen == ["[Relevant]B.", "B1."]
    totals = [critique["total"] for critique in found["critiques"] if critique["chosen"]]
    assert found["score"] == pytest.approx(sum(totals) / 2)
    assert [(c["segment"], c["hypothesis"]) for c in found["critiques"]] == [
        (0, 0), (0, 0), (1, 0), (1, 0), (1, 1), (1, 1),
    ]  # fmt: skip


def test_width_one_misses_what_width_two_finds() -> None:
    assert answer(FakeReflection(TREE), options_of(beam_width=1))["answer"] == "A [1]. A2 [2]."


def test_siblings_keep_their_own_context_unless_the_leak_is_asked_for() -> None:
    backend = FakeReflection({**TREE, **LEAKED})
    assert "leak" not in answer(backend, options_of())["answer"]
    assert "[Relevant]A.[Relevant]B." not in contexts(backend)
    leaking = FakeReflection({**TREE, **LEAKED})
    assert "leak" in answer(leaking, options_of("sibling_leak"))["answer"]
    assert contexts(leaking) == ["", "[Relevant]A.", "[Relevant]A.[Relevant]B."]


def test_utility_decides_unless_the_released_fault_is_asked_for() -> None:
    table: Table = {
        ("", "first"): last("Useless.", 0.9, utility=1),
        ("", "second"): last("Useful.", 0.8, utility=5),
    }
    assert answer(FakeReflection(table), options_of())["answer"] == "Useful [1]."
    zero = answer(FakeReflection(table), options_of("zero_utility"))
    assert zero["answer"] == "Useless [1]."


def test_finished_paths_stay_in_the_pool_unless_the_fault_is_asked_for() -> None:
    table: Table = {
        ("", "first"): last("Short.", 0.9),
        ("", "second"): part("Long,", 0.8),
        ("Long,", "first"): last("worse.", 0.6),
        ("Long,", "second"): last("bad.", 0.7),
    }
    assert answer(FakeReflection(table), options_of())["answer"] == "Short [1]."
    lost = answer(FakeReflection(table), options_of("deepest_level"))
    assert lost["answer"] == "Long, [1] bad [1]."


def test_products_order_negative_scores_wrongly_and_means_do_not() -> None:
    more = {"weight_relevance": 0, "weight_support": 0, "weight_utility": 1}
    more |= {"sequence_score": False}
    table: Table = {
        ("", "first"): part("Bad.", 0.6, utility=1),
        ("", "second"): part("Fair.", 0.6, utility=4),
        ("Bad.", "first"): last("Worse.", 0.6, utility=1),
        ("Fair.", "first"): last("Good.", 0.6, utility=4),
    }
    # IsUse ends an answer; the released search goes by the Retrieve token instead.
    search = ("released_search",)
    mean = answer(FakeReflection(table), options_of(*search, **more), ONE, TWO)
    assert mean["answer"] == "Fair [1]. Good [2]."
    product = answer(FakeReflection(table), options_of(*search, accumulation="product", **more))
    assert product["answer"] == "Bad [1]. Worse [1]."
    assert product["score"] == pytest.approx(1.0)


@pytest.mark.parametrize(("accumulation", "expected"), [("sum", 4.4), ("mean", 2.2)])
def test_sum_and_mean(accumulation: str, expected: float) -> None:
    table: Table = {
        ("", "first"): part("A.", 0.3, mean_log_probability=0.0),
        ("A.", "first"): last("B.", 0.3, mean_log_probability=0.0),
    }
    found = answer(FakeReflection(table), options_of(accumulation=accumulation), ONE)
    assert found["score"] == pytest.approx(expected)


def test_a_segment_is_scored_not_the_whole_continuation() -> None:
    text = "A.[Retrieval]<paragraph>made up</paragraph>[Relevant]B."
    table: Table = {("", "first"): last(text, 0.9, utility=5), ("A.", "first"): last("C.", 0.9)}
    whole = FakeReflection(table)
    found = answer(whole, options_of("whole_continuation"), ONE)
    assert found["answer"] == "A [1]. C [1]."
    assert found["critiques"][0]["text"] == "A."
    assert all(limits.whole_answer for _, _, limits in whole.generated)
    assert found["critiques"][0]["utility"] == 1


def test_an_invented_passage_is_cut_off_and_flagged() -> None:
    table: Table = {("", "first"): last("A.<paragraph>made up</paragraph>B.", 0.9)}
    found = answer(FakeReflection(table), options_of(), ONE)
    assert (found["answer"], found["raw"]) == ("A [1].", "A.")
    assert "invented_passage" in found["critiques"][0]["flags"]


def test_continue_keeps_the_last_passage() -> None:
    table: Table = {("", "second"): part("A.", 0.9, "continue"), ("A.", "second"): last("B.", 0.9)}
    more = Decision({YES: 0.3, NO: 0.1, MORE: 0.6}, MORE)
    backend = adaptive(table, {"A.": more})
    found = answer(backend, ReflectionSettings())
    assert found["answer"] == "A [1]. B [1]."
    assert [passages for _, passages, _ in backend.generated] == [(ONE, TWO), (TWO,)]
    assert backend.generated[1][0] == Prefix("Who?", "A.", TWO, "who")
    assert [choice["action"] for choice in found["choices"]] == ["retrieve", "continue"]


def test_without_retrieval_one_candidate_goes_on_and_the_token_stays_in_the_context() -> None:
    table: Table = {
        ("", "first"): part("A.", 0.9, "no_retrieve"),
        ("A.", None): part("B.", 0.9, "retrieve", mean_log_probability=-0.01),
        ("A.[No Retrieval]B.", "first"): last("C.", 0.9),
    }
    backend = adaptive(table, {"A.": fake_decision(0.1)})
    found = answer(backend, ReflectionSettings(), ONE)
    assert found["answer"] == "A [1]. B. C [1]."
    assert [len(passages) for _, passages, _ in backend.generated] == [1, 1, 1]
    second = found["critiques"][1]
    assert (second["passage"], second["relevance"]) == (None, None)
    assert second["total"] == pytest.approx(math.exp(-0.01))
    assert "no_retrieval_score" in second["flags"]


def test_without_a_passage_there_is_none_to_continue_with() -> None:
    table: Table = {("", None): part("A.", 0.9), ("[No Retrieval]A.", None): last("B.", 0.9)}
    more = Decision({YES: 0.01, NO: 0.3, MORE: 0.6}, MORE)
    found = answer(FakeReflection(table, otherwise=more), ReflectionSettings())
    assert found["answer"] == "A. B."
    assert [choice["action"] for choice in found["choices"]] == ["no_retrieve"] * 2


def test_hard_mode_follows_the_token_that_ended_the_segment() -> None:
    table: Table = {
        ("", "first"): part("A.", 0.9, "continue"),
        ("A.", "first"): part("B.", 0.9, "no_retrieve"),
        ("A.B.", None): part("C.", 0.9, "continue"),
        ("A.B.[No Retrieval]C.", None): last("D.", 0.9),
    }
    backend = FakeReflection(table, otherwise=Decision({YES: 0.4, NO: 0.2}, YES))
    found = answer(backend, ReflectionSettings(retrieval_mode="hard", beam_width=1))
    assert found["answer"] == "A [1]. B [1]. C. D."
    assert len(backend.decided) == 1
    actions = [choice["action"] for choice in found["choices"]]
    assert actions == ["retrieve", "continue", "no_retrieve", "no_retrieve"]


def test_never_generates_the_whole_answer_at_once() -> None:
    backend = FakeReflection({("", None): last("One.\n\nTwo.[Retrieval]Three.", 0.9)})
    found = answer(backend, ReflectionSettings(retrieval_mode="never"))
    assert (found["answer"], found["cited"]) == ("One. Two. Three.", [])
    assert [limits.whole_answer for _, _, limits in backend.generated] == [True]
    compat = ReflectionSettings(retrieval_mode="never", compat=frozenset({"cut_at_blank_line"}))
    assert answer(backend, compat)["answer"] == "One."


def test_static_retrieval_asks_once_and_dynamic_for_each_segment() -> None:
    static = Searching((ONE, TWO))
    run(long_form(ASKED, options_of()), FakeReflection(TREE), static)
    assert static.queries == ["who"]
    dynamic = Searching((ONE, TWO), (TWO,), (ONE,))
    options = options_of(segment_retrieval="dynamic")
    found = run(long_form(ASKED, options), FakeReflection(TREE), dynamic)
    assert dynamic.queries == ["who", "who A.", "who B."]
    assert [c["passage"] for c in found["critiques"]] == [0, 1, 1, 0]
    assert found["answer"] == "B [1]. B1 [2]."


def test_given_passages_serve_the_first_segment() -> None:
    asked = ASKED._replace(passages=(ONE, TWO))
    for retrieval, queries in (("static", []), ("dynamic", ["who A.", "who B."])):
        search = Searching((ONE, TWO))
        run(long_form(asked, options_of(segment_retrieval=retrieval)), FakeReflection(TREE), search)
        assert search.queries == queries


def test_used_passages_can_be_skipped() -> None:
    backend = FakeReflection(TREE)
    answer(backend, options_of(skip_used_passages=True))
    assert [passages for _, passages, _ in backend.generated] == [(ONE, TWO), (TWO,), (ONE,)]
    table: Table = {("", "first"): part("A.", 0.9), ("A.", None): last("B.", 0.9)}
    found = answer(FakeReflection(table), options_of(skip_used_passages=True), ONE)
    assert (found["answer"], found["flags"]) == ("A [1]. B.", ["passages_used_up"])


def test_hard_constraints_drop_candidates_and_fall_back_to_the_soft_ranking() -> None:
    hard = options_of(constraints="hard")
    table: Table = {("", "first"): unsupported("A."), ("", "second"): last("B.", 0.51)}
    assert answer(FakeReflection(table), options_of())["answer"] == "A."
    found = answer(FakeReflection(table), hard)
    assert (found["answer"], found["flags"]) == ("B [1].", [])
    assert found["critiques"][0]["why"] == "it says [No support / Contradictory]"
    all_of_them: Table = {("", "first"): unsupported("A."), ("", "second"): unsupported("B.", 0.9)}
    found = answer(FakeReflection(all_of_them), hard)
    assert (found["answer"], found["flags"]) == ("A.", ["constraint_fallback"])


def test_unsupported_segments_can_be_left_out_at_the_end() -> None:
    table: Table = {
        ("", "first"): unsupported("A.")._replace(ending="retrieve"),
        ("A.", "first"): last("B.", 0.9),
    }
    assert answer(FakeReflection(table), options_of(), ONE)["answer"] == "A. B [1]."
    ignoring = options_of(ignore_no_support=True)
    assert answer(FakeReflection(table), ignoring, ONE)["answer"] == "B [1]."
    nothing = answer(FakeReflection({("", "first"): unsupported("A.")}), ignoring, ONE)
    assert (nothing["answer"], nothing["flags"]) == ("", ["all_removed", "empty"])
