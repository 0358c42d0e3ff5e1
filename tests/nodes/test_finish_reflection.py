"""From an outcome to an answer: citations, what the model doubts, and why there is none."""

from typing import Any

import pytest

from crag.answering.outcome import NOT_FOUND
from crag.answering.support import WordAttributor
from crag.correction.provenance import unscored
from crag.nodes.finish_reflection import finish_reflection
from crag.papers.settings import PaperSettings
from crag.reflection.scoring import critique_of
from crag.settings import Settings
from crag.state import Choice, Critique, OfferedPassage, Reflection, Source
from crag.testing import FakeQuoter, fake_candidate


def passage(text: str, *strips: str, title: str = "T") -> OfferedPassage:
    made = [
        unscored(one, Source(id=one, title=title, url=f"{one[:3]}.md", position=""))
        for one in strips or (text,)
    ]
    return OfferedPassage(title=title, text=text, label="document", grade="", strips=made)


def critique(
    place: int | None = 0, *, segment: int = 0, sure: bool = True, **shares: Any
) -> Critique:
    candidate = fake_candidate("It was Ada.", **shares)._replace(sure=sure)
    made = critique_of(candidate, place, Settings(), segment=segment)
    made["chosen"] = True
    return made


def choice(action: Any = "retrieve", segment: int = 0, why: str = "it is so") -> Choice:
    return Choice(segment=segment, hypothesis=0, action=action, why=why)


def reflection(answer: str, cited: tuple[int, ...] = (0,), flags: Any = ()) -> Reflection:
    return Reflection(answer=answer, raw=answer, cited=[*cited], score=1.0, flags=[*flags])


def state(answer: str = "It was Ada.", **replaced: Any) -> Any:
    written = {name: replaced.pop(name) for name in Reflection.__annotations__ if name in replaced}
    reflected: Any = {
        "choices": [choice()],
        "critiques": [critique()],
        "passages": [passage("It was Ada. She was English.")],
        **(replaced.pop("reflection", reflection(answer)) or {}),
    }
    return {"question": "Who?", "reflection": reflected | written} | replaced


def concluded(given: Any, **settings: Any) -> Any:
    return finish_reflection(given, PaperSettings.model_validate(settings))


def kinds(update: Any) -> list[str]:
    return [event["kind"] for event in update["events"]]


def test_a_short_answer_cites_its_passage() -> None:
    update = concluded(state())
    assert update["answer"] == "It was Ada [1]."
    assert [entry["source"]["url"] for entry in update["citations"]] == ["It .md"]
    assert (update["outcome"], update["events"]) == ("answered", [])


@pytest.mark.parametrize("task", ["default", "popqa"])
@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"relevance": 0.1}, "the model wrote [Irrelevant] of 'T'"),
        ({"support": 0.1}, "the model wrote [No support / Contradictory] of 'T'"),
    ],
)
def test_what_is_doubted_is_not_cited(task: str, shares: Any, said: str) -> None:
    update = concluded(state(critiques=[critique(**shares)]), task=task)
    assert (update["answer"], update["citations"]) == ("It was Ada.", [])
    assert [(e["kind"], e["detail"]) for e in update["events"]] == [("unsupported_answer", said)]


GIVES_WAY = [
    ({"answer": "…"}, "the model wrote no words"),
    ({"critiques": [critique(relevance=0.1)]}, "the model wrote [Irrelevant] of 'T'"),
    ({"critiques": [critique(support=0.1)]}, "the model wrote [No support / Contradictory] of 'T'"),
    ({"answer": "The kettle boils."}, "no strip supports most sentences of the model's answer"),
    ({"question": "Who wrote Moby-7?"}, "no strip that the model's answer cites has Moby-7"),
]


@pytest.mark.parametrize(("replaced", "problem"), GIVES_WAY)
def test_text_that_no_passage_bears_out_gives_way_to_a_quotation(
    replaced: dict[str, Any], problem: str
) -> None:
    given = state(**replaced)
    update = finish_reflection(given, Settings(), WordAttributor(), FakeQuoter())
    assert update["answer"].endswith("“It was Ada. She was English.” [1]")
    is_of_another = "Moby-7" in problem
    assert update["outcome"] == ("likely" if is_of_another else "answered")
    assert [entry["number"] for entry in update["citations"]] == [1]
    (told,) = (entry for entry in update["events"] if entry["kind"] == "uncited_answer")
    assert told["detail"] == f"{problem}: {given['reflection']['answer']}"
    assert told["fallback"] == "quote the strips"
    assert {entry["node"] for entry in update["events"]} == {"finish_reflection"}
    nothing = finish_reflection(given, Settings(), WordAttributor(), FakeQuoter(finds=False))
    assert (nothing["answer"], nothing["outcome"]) == (NOT_FOUND, "not_found")


def test_text_without_a_passage_and_quotations_of_a_back_end_do_not_give_way() -> None:
    parts = WordAttributor(), FakeQuoter()
    alone = state("The kettle boils.", critiques=[critique(None)])
    assert kinds(finish_reflection(alone, Settings(), *parts)) == ["own_knowledge"]
    quoted = state("The kettle boils.")
    quoted["reflection"]["critiques"][0]["quoted"] = True
    assert finish_reflection(quoted, Settings(), *parts)["answer"] == "The kettle boils [1]."


def test_the_papers_tasks_get_whole_passages_and_no_numbers() -> None:
    update = concluded(state(passages=[passage("a; b", "a", "b")]), task="popqa")
    assert update["answer"] == "It was Ada."
    assert [entry["text"] for entry in update["citations"]] == ["a; b"]


@pytest.mark.parametrize(
    ("flag", "kind"),
    [
        ("depth_limit", "reflection_limited"),
        ("cut", "reflection_limited"),
        ("model_failed", "model_failed"),
        ("constraint_fallback", "constraints_waived"),
    ],
)
def test_what_ended_early_is_an_event(flag: Any, kind: str) -> None:
    given = state(reflection=reflection("It was Ada.", (), [flag]))
    assert kinds(concluded(given)) == [kind]
    given["reflection"]["answer"] = ""
    assert kinds(concluded(given)) == [kind, "abstained"]


@pytest.mark.parametrize(
    ("replaced", "why"),
    [
        ({"reflection": None, "critiques": []}, "there is no knowledge"),
        ({"reflection": None, "critiques": [], "action": "incorrect"},
         "no knowledge was left after the action incorrect"),
        ({"reflection": reflection("")}, "nothing that was written answers the question"),
        ({"reflection": reflection("What I found does not answer this.", (0,))},
         "the model found no answer in the knowledge"),
        ({"reflection": reflection("Ada.", (), ["no_passages"]), "critiques": [critique(None)]},
         "there is no knowledge"),
    ],
)  # fmt: skip
def test_it_abstains_and_says_why(replaced: Any, why: str) -> None:
    update = concluded(state(**replaced))
    assert update["outcome"] == "not_found"
    assert update["answer"] == "I could not find this in the documents."
    assert update["citations"] == []
    assert (update["events"][-1]["kind"], update["events"][-1]["detail"]) == ("abstained", why)
