"""Answers, citations, and every way in which a model can fail."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from crag.answering.outcome import NOT_FOUND, quoted_text
from crag.answering.support import WordAttributor
from crag.events import event
from crag.nodes.contextualize import WITH_SUBJECT
from crag.nodes.generate import Generate
from crag.papers.settings import PaperSettings
from crag.papers.tasks import PaperTask, written
from crag.parts import Attributor, Parts, Quotation
from crag.prompts import PACKAGED, Prompts
from crag.reflection.prompt_format import base_prompt
from crag.settings import Settings
from crag.state import Source, State, Strip
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeRetriever

QUESTION = "Who wrote it?"
TUNED = Path(__file__).parents[2] / "papers" / "recipes" / "tuned_prompts"


def strip(text: str) -> Strip:
    source = Source(id="a", title="Ada", url="ada.md", position="line 3")
    return Strip(text=text, kind="document", source=source, score=0.9, kept=True, reason="")


def state(*texts: str, **more: Any) -> State:
    asked = {"question": QUESTION, "asked": QUESTION} | more
    return State(strips=[strip(text) for text in texts], **asked)  # type: ignore[typeddict-item]


def generating(model: Any, quoter: Any, **parts: Any) -> Generate:
    fakes: Any = {"retriever": FakeRetriever(), "evaluator": FakeEvaluator()}
    return Generate(Parts(model=model, quoter=quoter, **fakes | parts))


def kinds(update: Any) -> list[str]:
    return [entry["kind"] for entry in update["events"]]


def test_the_model_reads_numbered_strips_and_its_citations_point_at_them() -> None:
    model = FakeChatModel(replies=["Ada did [2]."])
    update = generating(model, None).run(state("First strip.", "Ada did."), Settings())
    assert update["answer"] == "Ada did [2]."
    assert update["citations"] == [{"number": 2, "text": "Ada did.", "source": strip("")["source"]}]
    assert '<passage number="2" title="Ada">' in str(model.prompts[0][-1].content)
    assert update["events"] == []


class Bounded(FakeChatModel):
    """Remembers how long its answers may be."""

    bounds: list[int | None] = Field(default_factory=list)

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        self.bounds.append(options.get("max_tokens"))
        return super()._generate(messages, *args, **options)


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda model: model,
        lambda model: model.with_retry(),
        lambda model: model.bind(stop=["."]).with_config(tags=["mine"]),
        lambda model: FakeChatModel(error=ValueError("429")).with_fallbacks([model.with_retry()]),
    ],
)
def test_the_length_of_an_answer_is_bounded_however_the_model_is_wrapped(wrapped: Any) -> None:
    model = Bounded(replies=["Ada did [1]."])
    node, settings = generating(wrapped(model), None), Settings(max_answer_tokens=40)
    assert node.run(state("Ada did."), settings)["answer"] == "Ada did [1]."
    assert model.bounds == [40]


def test_an_answer_without_citation_gives_way_to_quotation_or_none() -> None:
    model = FakeChatModel(replies=["Bob."])
    update = generating(model, FakeQuoter()).run(state("Ada did."), Settings())
    assert kinds(update) == ["uncited_answer"]
    assert update["events"][0]["detail"].endswith("most sentences of the model's answer: Bob.")
    assert update["events"][0]["fallback"] == "quote the strips"
    assert update["answer"] == "“Ada did.” [1]"
    assert update["usage"]["llm_calls"] == 1
    update = generating(model, None).run(state("Ada did."), Settings())
    assert kinds(update) == ["uncited_answer", "abstained"]
    assert update["events"][0]["fallback"] == "abstain"
    assert (update["outcome"], update["citations"]) == ("not_found", [])
    update = generating(None, FakeQuoter(finds=False)).run(state("Else."), Settings())
    assert (update["outcome"], kinds(update)) == ("not_found", ["abstained"])


@pytest.mark.parametrize("reply", ["[2]", "[1], [2].", "Passage 2 says so:"])
def test_a_model_that_writes_no_words_gives_way_to_quotation(reply: str) -> None:
    given = state("Bob slept.", "Ada wrote it.")
    update = generating(FakeChatModel(replies=[reply]), FakeQuoter()).run(given, Settings())
    assert (update["answer"], kinds(update)) == ("“Bob slept.” [1]", ["wordless_answer"])
    assert reply in update["events"][0]["detail"]
    assert (update["usage"]["llm_calls"], update["sentences"]) == (1, [])


class ReadingQuoter:
    """Quote the last strip, and say whether and where it answers."""

    def __init__(self, *, sure: bool, span: tuple[int, int] | None) -> None:
        self._sure, self._span = sure, span

    def quote(self, question: str, strips: Any) -> list[Quotation]:
        del question
        text, last = strips[-1]["text"], len(strips) - 1
        return [Quotation(text, last, 0.9, (0, len(text)), self._span, sure=self._sure)]


@pytest.mark.parametrize(
    ("sure", "span", "outcome"),
    [(True, (0, 3), "answered"), (False, (0, 3), "likely"), (True, None, "likely")],
)
def test_a_quotation_takes_the_place_of_a_decline_and_is_as_sure_as_its_quoter(
    sure: bool, span: tuple[int, int] | None, outcome: str
) -> None:
    node = generating(FakeChatModel(replies=[NOT_FOUND]), ReadingQuoter(sure=sure, span=span))
    update = node.run(state("Bob slept.", "Ada wrote it."), Settings())
    assert update["answer"] == "“Ada wrote it.” [2]"
    assert (update["outcome"], kinds(update)) == (outcome, ["model_declined"])
    assert update["usage"]["llm_calls"] == 1


@pytest.mark.parametrize(
    ("quotations", "answer"),
    [
        ([Quotation("Bob slept.", 0, 0.9), Quotation("Ada did.", 1, 0.9)],
         "“Bob slept.” [1] “Ada did.” [2]"),
        ([Quotation("It is 4.", 0, 0.9, lead="A:"), Quotation("Yes.", 1, 0.9, lead="A:")],
         "A:\n\n“It is 4.” [1]\n\n“Yes.” [2]"),
        ([Quotation("| a |\n| --- |\n| b |", 0, 0.9)],
         "“\n\n| a |\n| --- |\n| b |\n\n” [1]"),
        ([Quotation("Two:\n\n- a\n- b", 0, 0.9)], "“Two:\n\n- a\n- b\n\n” [1]"),
        ([Quotation("Run:\n\n```\na\n```", 0, 0.9)], "“Run:\n\n```\na\n```\n\n” [1]"),
    ],
)  # fmt: skip
def test_quotations_are_written_so_that_every_client_draws_them(
    quotations: list[Quotation], answer: str
) -> None:
    assert quoted_text(quotations) == answer


@pytest.mark.parametrize(
    ("model", "kind", "detail"),
    [
        (FakeChatModel(error=TimeoutError("60 s")), "model_failed", "TimeoutError: 60 s"),
        (FakeChatModel(error=ValueError("bad key sk-abcdef12345")), "model_failed", "[secret]"),
        (FakeChatModel(refusal="I will not"), "model_refused", "I will not"),
        (FakeChatModel(replies=[""]), "model_empty", "nothing"),
        (FakeChatModel(replies=[" \n"]), "model_empty", "nothing"),
    ],
)
def test_a_model_that_fails_gives_way_to_quotation(
    model: FakeChatModel, kind: str, detail: str
) -> None:
    given = state("Ada wrote the first program.")
    update = generating(model, FakeQuoter()).run(given, Settings())
    assert kinds(update) == [kind]
    assert detail in update["events"][0]["detail"]
    assert update["events"][0]["fallback"] == "quote the strips"
    assert update["answer"] == "“Ada wrote the first program.” [1]"
    assert [citation["number"] for citation in update["citations"]] == [1]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (("# Mills", "## More", "See there."), "“See there.” [3]"),
        (("# Mills", "## More"), "“# Mills” [1]"),
    ],
)
def test_correct_without_a_quotation_shows_the_best_strip_with_words_of_its_own_as_it_is_read(
    texts: tuple[str, ...], shown: str
) -> None:
    node = generating(None, FakeQuoter(finds=False))
    update = node.run(state(*texts, action="correct"), Settings())
    assert (update["answer"], update["outcome"]) == (shown, "likely")


@pytest.mark.parametrize("task", get_args(PaperTask))
def test_a_tuned_model_is_asked_as_it_was_trained(task: Any) -> None:
    model, options = FakeChatModel(replies=["A"]), {one: f"by {one}" for one in "ABCD"}
    prompts, settings = Prompts.from_folder(TUNED), PaperSettings(task=task)
    question = f"{QUESTION}\n{written(options)}" if task == "arc" else QUESTION
    given = {**state("It is red."), "question": QUESTION, "asked": question}
    generating(model, None, prompts=prompts).run(State(**given), settings)
    asked_for = settings.profile.instruction_for(QUESTION, options if task == "arc" else None)
    prompt = str(model.prompts[0][0].content)
    head, empty, tail = base_prompt(f"EMPTY\n\n{asked_for}").partition("EMPTY")
    assert empty
    assert prompt.startswith(head)
    assert prompt.endswith(tail)
    assert "It is red." in prompt.removeprefix(head).removesuffix(tail)


def asked(
    *,
    prompts: Prompts = PACKAGED,
    attributor: Attributor | None = WordAttributor(),  # noqa: B008 - it holds nothing
    **more: Any,
) -> str:
    model = FakeChatModel(replies=["Ada did [1]."])
    node = generating(model, None, prompts=prompts, attributor=attributor)
    node.run(state("Ada did.", **more), Settings())
    return "\n".join(str(message.content) for message in model.prompts[0])


def test_where_the_action_is_correct_the_model_is_not_offered_to_decline() -> None:
    may_decline, has_to_answer = asked(), asked(action="correct")
    assert NOT_FOUND in may_decline
    assert NOT_FOUND not in has_to_answer
    unattributed = asked(action="correct", attributor=None)
    assert unattributed == may_decline, "nothing finds the numbers that it would not be asked for"


def test_who_replaces_the_prompt_is_asked_with_no_other_one(tmp_path: Path) -> None:
    def replacing(**texts: str) -> Prompts:
        folder = tmp_path / "-".join(texts)
        folder.mkdir()
        for name, text in texts.items():
            path = folder / f"{name}.md"
            path.write_text(f"[user]\n{text}: $question\n$knowledge", encoding="utf-8")
        return Prompts.from_folder(folder)

    mine = replacing(answer_default="Mine")
    assert asked(prompts=mine, action="correct").startswith("Mine: ")
    both = replacing(answer_default="Mine", answer_correct="Mine, if Correct")
    assert asked(prompts=both, action="correct").startswith("Mine, if Correct: ")
    assert asked(prompts=both).startswith("Mine: ")
    alone = replacing(answer_correct="Mine, if Correct")
    assert asked(prompts=alone, action="correct").startswith("Mine, if Correct: ")


def followed(asked: str, kind: Any) -> State:
    """Return a chat about the price of a hotel, in which a rule completed the last question."""
    said = state("A hotel costs up to 180 euros in Munich.", asked=asked)
    first = "How much may a hotel cost?"
    said["messages"] = [HumanMessage(first), AIMessage("180 euros."), HumanMessage(asked)]
    said["question"] = f"{first} {asked}"
    fallback = WITH_SUBJECT if kind.startswith("contextualize") else ""
    said["events"] = [event(kind, "contextualize", "no model", fallback)]
    return said


@pytest.mark.parametrize(
    ("asked", "kind", "outcome"),
    [
        ("and in Rome?", "contextualize_skipped", "likely"),
        ("no, I meant Rome", "contextualize_failed", "likely"),
        ("and in Munich?", "contextualize_skipped", "answered"),
        ("and in a hotel?", "contextualize_skipped", "answered"),
        ("and how is rome?", "contextualize_skipped", "answered"),
        ("why?", "contextualize_skipped", "answered"),
        ("and in rome?", "question_respelled", "answered"),
    ],
)
def test_the_earlier_answer_is_not_sure_to_answer_a_follow_up_that_names_another_thing(
    asked: str, kind: Any, outcome: str
) -> None:
    said = followed(asked, kind)
    quoter = ReadingQuoter(sure=True, span=(0, 3))
    update = generating(None, quoter).run(said, Settings())
    assert update["outcome"] == outcome
    assert "180 euros" in update["answer"]


@pytest.mark.parametrize(
    ("asked", "text", "about", "outcome"),
    [
        ("What is the price in Oakham?", "Thornby's museum costs 4 pounds.", "", "likely"),
        ("What is the price in Oakham?", "The museum costs 4 pounds.", "Oakham", "answered"),
        ("What is the price in Oakham?", "Oakham's museum costs 4 pounds.", "", "answered"),
        ("what is the price in oakham?", "Thornby's museum costs 4 pounds.", "", "answered"),
        ("What changed in 3.12?", "Python 3.11 is faster.", "", "likely"),
        ("Where is Ole Meyer?", "Ole Lund is in.\n\nAnn Meyer is not.", "", "likely"),
        ("Is it a museum? What is its price?", "It costs 4 pounds.", "", "answered"),
        ("WHAT IS THE PRICE IN OAKHAM?", "It costs 4 pounds.", "", "answered"),
        ("Was kostet der Eintritt in das Museum?", "It costs 4 pounds.", "", "answered"),
    ],
)
@pytest.mark.parametrize("place", ["title", "section"])
def test_a_passage_without_a_name_of_the_question_is_not_sure_to_answer_it(
    asked: str, text: str, about: str, outcome: str, place: str
) -> None:
    found = state(text)
    found["question"] = asked
    if place == "title":
        found["strips"][0]["source"]["title"] = about
    else:
        found["strips"][0]["headings"] = [about]
    quoter = ReadingQuoter(sure=True, span=(0, 3))
    assert generating(None, quoter).run(found, Settings())["outcome"] == outcome


@pytest.mark.parametrize(
    ("text", "written", "shown"),
    [
        ("A ticket in Thornby costs 4 pounds.", "It costs 4 pounds [1].", "“A ticket"),
        ("A ticket in Oakham costs 4 pounds.", "It costs 4 pounds [1].", "It costs"),
        ("A ticket in Oakham costs 4 pounds.",
         "It costs 4 pounds [1]. Children pay nothing on Mondays.", "It costs"),
        ("A ticket in Oakham costs 4 pounds.",
         "It costs 4 pounds [1]. Children pay nothing on Mondays. Dogs must wait outside.",
         "“A ticket"),
    ],
)  # fmt: skip
def test_an_answer_needs_the_names_of_the_question_and_support_for_most_of_it(
    text: str, written: str, shown: str
) -> None:
    found = state(text)
    found["question"] = "What does a ticket in Oakham cost?"
    node = generating(FakeChatModel(replies=[written]), FakeQuoter(), attributor=WordAttributor())
    update = node.run(found, Settings())
    assert update["answer"].startswith(shown)
    assert ("uncited_answer" in kinds(update)) == shown.startswith("“")


class LastLineQuoter:
    """Quotes the last line of the first strip, and is sure."""

    def quote(self, question: str, strips: Sequence[Strip]) -> list[Quotation]:
        del question
        return [Quotation(strips[0]["text"].rpartition("\n")[2], 0, 0.9)] if strips else []


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("In Oakham it is closed.\n\nA ticket costs 5 pounds.", "likely"),
        ("Come.\n\nA ticket in Oakham costs 5 pounds.", "answered"),
    ],
)
def test_a_name_elsewhere_in_the_strip_makes_no_quotation_sure(text: str, outcome: str) -> None:
    found = state(text)
    found["question"] = "What does a ticket in Oakham cost?"
    update = generating(None, LastLineQuoter()).run(found, Settings())
    assert (update["outcome"], "5 pounds" in update["answer"]) == (outcome, True)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("“<Ada> did.” [1]", "likely"),
        (r"“\<Ada> did.” [1]", "likely"),
        ("“Bob did.” [1]", "answered"),
    ],
)
def test_what_was_said_before_is_not_sure_to_answer_a_follow_up(said: str, outcome: str) -> None:
    chat = state("<Ada> did.")
    chat["question"] = "Who wrote it? how do I ask her?"
    chat["messages"] = [HumanMessage("Who wrote it?"), AIMessage(said), HumanMessage("how?")]
    chat["asked"] = "how do I ask her?"
    chat["events"] = [event("contextualize_skipped", "contextualize", "no model", WITH_SUBJECT)]
    update = generating(None, ReadingQuoter(sure=True, span=(0, 3))).run(chat, Settings())
    assert update["outcome"] == outcome
