"""Each option that restores a released behaviour gives what the released program gives.

The programs are written anew in `tests.reflection.released`. Every comparison is over many random
inputs and must be equal in all of them.
"""

import random
from collections.abc import Sequence

import pytest

from crag.parts import Candidate, Decision, Passage, Prefix
from crag.reflection.driver import Asked, ReflectionOutcome, run
from crag.reflection.long_form import long_form
from crag.reflection.released import short_form_score
from crag.reflection.scoring import retrieve_ratio, score
from crag.reflection.short_form import short_form
from crag.reflection.testing import FakeReflection
from crag.reflection_settings import RELEASED_LONG, RELEASED_SHORT, ReflectionSettings
from tests.reflection import released

RUNS = 300
PASSAGES = tuple(Passage(f"T{place}", f"passage {place}") for place in range(3))
ALONE = "alone"


def model(seed: int, *, retrieves: bool) -> FakeReflection:
    def candidate(prefix: Prefix, passage: Passage | None) -> Candidate:
        return written(seed, prefix.answered, passage, retrieves=retrieves)

    return FakeReflection(candidate)


def written(
    seed: int, answered: str, passage: Passage | None, *, retrieves: bool = True
) -> Candidate:
    return released.drawn((seed, answered, passage and passage.text), retrieves=retrieves)


def found(query: str) -> Sequence[Passage]:
    assert query
    return PASSAGES


def equal(name: str, pairs: Sequence[tuple[object, object]]) -> None:
    """Assert that all pairs are equal, and print of how many this holds."""
    same = sum(ours == theirs for ours, theirs in pairs)
    print(f"{name}: equal in {same} of {len(pairs)}")  # noqa: T201 - the figure; see it with -s
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def short(seed: int, *, closed: bool, mode: str) -> ReflectionOutcome:
    options = ReflectionSettings(retrieval_mode=mode, compat=RELEASED_SHORT)
    asked = Asked("Q?", "Q?", closed=closed)
    return run(short_form(asked, options), model(seed, retrieves=False), found)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_released_short_form(closed: bool) -> None:
    pairs = []
    for seed in range(RUNS):
        candidates = [written(seed, "", one, retrieves=False) for one in PASSAGES]
        ours = short(seed, closed=closed, mode="always")["answer"]
        pairs.append((ours, released.short_answer(candidates, closed=closed)))
    equal(f"short form, {'closed' if closed else 'open'}", pairs)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_released_short_form_without_retrieval(closed: bool) -> None:
    pairs = []
    for seed in range(RUNS):
        candidate = written(seed, "", None, retrieves=False)
        ours = short(seed, closed=closed, mode="never")["answer"]
        pairs.append((ours, released.short_answer_alone(candidate)))
    equal(f"no retrieval, {'closed' if closed else 'open'}", pairs)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_model_without_the_tokens_is_ranked_by_its_sequence_score(closed: bool) -> None:
    pairs = []
    for seed in range(RUNS):
        bare = [neutral(seed, one) for one in PASSAGES]
        backend = FakeReflection(lambda _, passage, seed=seed: neutral(seed, passage))
        options = ReflectionSettings(retrieval_mode="always", compat=RELEASED_SHORT)
        ours = run(short_form(Asked("Q?", "Q?", closed=closed), options), backend, found)
        pairs.append((ours["answer"], released.short_answer(bare, closed=closed)))
    equal(f"without tokens, {'closed' if closed else 'open'}", pairs)


def neutral(seed: int, passage: Passage | None) -> Candidate:
    one = written(seed, "", passage, retrieves=False)
    return one._replace(relevance={}, support=None, utility=None)


def long(seed: int, *, biography: bool, ignore_no_support: bool) -> ReflectionOutcome:
    compat = RELEASED_LONG - {"released_citations"} | {"released_biography"}
    options = ReflectionSettings(
        form="long", retrieval_mode="always", accumulation="product", max_depth=5, beam_width=2,
        delta=0.2, ignore_no_support=ignore_no_support, max_reflection_tokens=10_000_000,
        compat=compat if biography else RELEASED_LONG,
    )  # fmt: skip
    return run(long_form(Asked("Q?", "Q?"), options), model(seed, retrieves=True), found)


def paths(seed: int) -> list[list[released.Node]]:
    def generate(context: str, passage: Passage | None) -> Candidate:
        return written(seed, context, passage)

    return released.tree(generate, PASSAGES, delta=0.2, width=2, max_depth=5)


@pytest.mark.parametrize("ignore", [False, True], ids=["all", "supported"])
def test_released_long_form_as_biographies_are_written(ignore: bool) -> None:
    pairs = [
        (
            long(seed, biography=True, ignore_no_support=ignore)["answer"],
            released.biography(paths(seed), ignore_no_support=ignore),
        )
        for seed in range(RUNS)
    ]
    equal(f"long form, Biography, ignore_no_support={ignore}", pairs)


@pytest.mark.parametrize("ignore", [False, True], ids=["all", "supported"])
def test_released_long_form_as_asqa_is_written(ignore: bool) -> None:
    pairs = []
    for seed in range(RUNS):
        ours = long(seed, biography=False, ignore_no_support=ignore)
        answer, cited = released.asqa(paths(seed), ignore_no_support=ignore)
        texts = [ours["passages"][place]["text"] for place in ours["cited"]]
        pairs.append(((ours["answer"], texts), (answer, [one.text for one in cited])))
    equal(f"long form, ASQA, ignore_no_support={ignore}", pairs)


def test_the_remap_and_empty_segments_have_an_effect() -> None:
    """What the comparison above would not show if no run had them."""
    raws = [node.raw for seed in range(RUNS) for one in paths(seed) for node in one[1:]]
    texts = [node.text for seed in range(RUNS) for one in paths(seed) for node in one[1:]]
    assert sum(not text for text in texts) > 50
    assert sum(raw.endswith(released.NO) for raw in raws) > 100
    without = RELEASED_LONG - {"released_remap"}
    changed = 0
    for seed in range(60):
        options = ReflectionSettings(
            form="long", retrieval_mode="always", accumulation="product", max_depth=5,
            compat=without,
        )  # fmt: skip
        ours = run(long_form(Asked("Q?", "Q?"), options), model(seed, retrieves=True), found)
        changed += ours["answer"] != long(seed, biography=False, ignore_no_support=False)["answer"]
    assert changed > 10


def test_an_answer_without_retrieval_ends_at_the_first_empty_line() -> None:
    options = ReflectionSettings(form="long", retrieval_mode="never", compat=RELEASED_LONG)
    text = "[No Retrieval]One.\nTwo.[Utility:5]\n\nThree."
    backend = FakeReflection(lambda _, __: Candidate(text, None, None, None, -1.0, 3, "end"))
    outcome = run(long_form(Asked("Q?", "Q?"), options), backend, found)
    assert (outcome["answer"], outcome["cited"]) == ("One.Two.", [])


def test_sequence_score_with_and_without_the_token_that_ends_the_text() -> None:
    counted = ReflectionSettings(compat=frozenset({"end_token_counts"}))
    pairs, without = [], []
    for seed in range(1000):
        one = released.drawn(seed)
        ours = short_form_score(one, counted, has_passage=True).sequence
        pairs.append((round(ours, 12), round(released.with_end(one), 12)))
        plain = released.with_end(one._replace(end_log_probability=None))
        ours = score(one, ReflectionSettings(), has_passage=True).sequence
        without.append((round(ours, 12), round(plain, 12)))
    equal("sequence score with the end token", pairs)
    equal("sequence score without it", without)
    assert sum(a != b for a, b in zip(pairs, without, strict=True)) > 700


@pytest.mark.parametrize("over_all", [False, True], ids=["yes and no", "three tokens"])
def test_share_of_retrieval(over_all: bool) -> None:
    pairs = []
    for seed in range(1000):
        draw = random.Random(seed)  # noqa: S311 - made-up data
        yes, no, more = (draw.random() for _ in range(3))
        told = {released.YES: yes, released.NO: no, released.MORE: more}
        expected = yes / (yes + no + more) if over_all else yes / (yes + no)
        ours, _ = retrieve_ratio(told, over_all=over_all)
        pairs.append((round(ours, 12), round(expected, 12)))
    equal(f"share of retrieval, over all={over_all}", pairs)


@pytest.mark.parametrize(("compat", "retrieves"), [("", True), ("share_of_three", False)])
def test_the_share_of_three_tokens_decides(compat: str, retrieves: bool) -> None:
    told = Decision({released.YES: 0.1, released.NO: 0.1, released.MORE: 0.8}, released.MORE)
    options = ReflectionSettings.model_validate({"compat": compat})
    backend = FakeReflection(lambda *_: released.drawn(1), otherwise=told)
    outcome = run(short_form(Asked("Q?", "Q?"), options), backend, found)
    assert (outcome["choices"][0]["action"] == "retrieve") == retrieves
