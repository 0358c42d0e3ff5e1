"""What the documents say of reflection is true: choices, settings, commands, costs, programs."""

import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from langchain_core.documents import Document

from crag.cli.options import METHODS
from crag.events import EventKind
from crag.graph import build_self_crag, build_self_rag
from crag.papers.experiments.released_reflection import RELEASED_LONG, RELEASED_SHORT
from crag.parts import Candidate, Parts, Passage, Prefix
from crag.reflection.testing import FakeReflection, fake_candidate
from crag.reflection_settings import Compat, ReflectionSettings
from crag.runtime.environment import Environment
from crag.settings import Settings, settings_from
from crag.state import Flag
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeRetriever

DOCS = Path(__file__).parents[2] / "docs"
SELF_RAG = (DOCS / "method" / "self-rag.md").read_text("utf-8")
SELF_CRAG = (DOCS / "method" / "self-crag.md").read_text("utf-8")
GUIDE = (DOCS / "guide" / "reflection.md").read_text("utf-8")
OWN_PARTS = (DOCS / "guide" / "own-parts.md").read_text("utf-8")
EVENTS = (DOCS / "guide" / "events.md").read_text("utf-8")

ASSIGNMENT = re.compile(r"`(\w+)=([^`]+)`")
NAME = re.compile(r"`(\w+)`")


def part(text: str, name: str) -> str:
    """Return what stands between the marks of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    assert text.count(begin) == text.count(end) == 1
    return text.partition(begin)[2].partition(end)[0]


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table's rows, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == len(found[0]) for row in found)
    return found[2:]


def code(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


CHOICES = [*rows(part(SELF_RAG, "choices")), *rows(part(SELF_CRAG, "choices"))]
OPTIONS = [given for row in CHOICES for given in ASSIGNMENT.findall(row[4])]
DEFAULTS = [given for row in CHOICES for given in ASSIGNMENT.findall(row[3])]


def test_every_quirk_is_listed_once() -> None:
    listed = [value for name, value in OPTIONS if name == "compat"]
    assert sorted(listed) == sorted(get_args(Compat))


def test_every_option_is_listed() -> None:
    named = {name for name, _ in (*OPTIONS, *DEFAULTS)}
    assert (
        {*ReflectionSettings.model_fields, "self_crag_knowledge"}
        <= named
        <= set(Settings.model_fields)
    )


def test_every_row_tells_its_option_or_that_there_is_none() -> None:
    without = [row[0] for row in CHOICES if not ASSIGNMENT.search(row[4])]
    assert all(row[4].startswith("no option") for row in CHOICES if row[0] in without)
    assert len({row[0] for row in CHOICES}) == len(CHOICES) > len(without)


@pytest.mark.parametrize(("name", "value"), OPTIONS)
def test_options_for_the_other_behaviour_are_accepted_and_change_something(
    name: str, value: str
) -> None:
    assert getattr(settings_from({name: value}), name) != getattr(Settings(), name)


@pytest.mark.parametrize(("name", "value"), DEFAULTS)
def test_defaults_are_as_listed(name: str, value: str) -> None:
    assert getattr(settings_from({name: value}), name) == getattr(Settings(), name)


def commands(text: str) -> list[list[str]]:
    joined = "".join(code(text, "console")).replace("\\\n", " ")
    return [shlex.split(line[2:]) for line in joined.splitlines() if line.startswith("$ crag ask")]


def given_in(command: list[str]) -> Settings:
    values = [after for word, after in pairwise(command) if word == "--set"]
    return settings_from(dict(value.split("=", maxsplit=1) for value in values))


def test_commands_restore_the_released_programs() -> None:
    (short,) = commands(part(SELF_RAG, "released short"))
    (long,) = commands(part(SELF_RAG, "released long"))
    assert given_in(short).compat == RELEASED_SHORT
    assert given_in(short).form == "short"
    assert given_in(long).compat == RELEASED_LONG
    assert (given_in(long).form, given_in(long).accumulation) == ("long", "product")


@pytest.mark.parametrize("text", [SELF_RAG, GUIDE], ids=["method", "guide"])
def test_commands_name_methods_and_settings_that_exist(text: str) -> None:
    found = commands(text)
    assert {command[command.index("--method") + 1] for command in found} <= set(METHODS)
    assert [given_in(command) for command in found]


def test_the_guide_groups_every_setting_of_reflection() -> None:
    section = GUIDE.partition("## Settings of reflection\n")[2].partition("\n## ")[0]
    named = [name for row in rows(section) for name in NAME.findall(row[0])]
    assert sorted(named) == sorted(
        [
            *ReflectionSettings.model_fields,
            "self_crag_knowledge",
            "ambiguous_text",
            "knowledge_title",
        ]
    )


def test_the_guide_names_the_variables_that_exist() -> None:
    variables = {f"CRAG_{name.upper()}" for name in Environment.model_fields}
    named = set(re.findall(r"CRAG_REFLECTION\w*", GUIDE))
    assert named == {name for name in variables if name.startswith("CRAG_REFLECTION")}


def test_every_kind_of_event_is_listed_once() -> None:
    listed = [NAME.findall(row[0])[0] for row in rows(EVENTS.partition("\n## ")[0])]
    assert sorted(listed) == sorted(get_args(EventKind))


def test_flags_that_are_named_exist() -> None:
    text = SELF_RAG + SELF_CRAG + GUIDE
    named = set(re.findall(r"flagged `(\w+)`", text)) | {"support_missing", "cut", "merged"}
    assert len(named) > 3
    assert named <= set(get_args(Flag))
    assert all(f"`{name}`" in text for name in named)


def candidate(prefix: Prefix, passage: Passage | None) -> Candidate:
    """Write what no other hypothesis says, and never end."""
    said = f"{len(prefix.answered)} {passage.text if passage else ''}"
    return fake_candidate(said, utility=None, ending="retrieve")


def costs_of(method: str, form: str) -> tuple[int, int]:
    """Return the calls of a model with the tokens, and of a chat model: one for each candidate."""
    reflection = FakeReflection(candidate)
    parts = Parts(
        retriever=FakeRetriever(documents=[Document(f"Fact {place}.") for place in range(10)]),
        evaluator=FakeEvaluator(0.9),
        quoter=FakeQuoter(),
        reflection=reflection,
    )
    build = build_self_rag if method == "self-rag" else build_self_crag
    state = build(parts).invoke({"question": "Why?"}, context=settings_from({"form": form}))
    return state["usage"]["llm_calls"], sum(reflection.batches) + len(reflection.decided)


def test_the_table_of_costs_is_true() -> None:
    table = rows(GUIDE.partition("## What a question costs\n")[2].partition("\n## ")[0])
    numbers = {row[0]: [re.findall(r"\d+", cell) for cell in row[1:]] for row in table}
    tuned, prompted = numbers["`server`, in process"], numbers["`prompted`"]
    for place, (method, form) in enumerate(
        [("self-rag", "short"), ("self-crag", "short"), ("self-rag", "long")]
    ):
        batched, single = costs_of(method, form)
        assert str(batched) in tuned[place]
        assert str(single) in prompted[place]
    _, single = costs_of("self-crag", "long")
    assert f"at most {single} calls for a long answer" in " ".join(GUIDE.split())


GUIDE_PROGRAMS = code(GUIDE, "python")
OWN_PROGRAMS = code(OWN_PARTS.partition("## Your own reflection back end\n")[2], "python")


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (
            GUIDE_PROGRAMS[0],
            [
                r"Ada Lovelace .* \[1\]\. document-1",
                "approximation: .+",
                r"\d\.\d\d True place 1 .+",
            ],
        ),
        (
            GUIDE_PROGRAMS[1],
            [
                "retrieve - .+",
                "True - Ada Lovelace .+ - the best .+",
                "False - A kettle .+ below .+",
            ],
        ),
        (OWN_PROGRAMS[0], [r"Ada Lovelace .* \[1\]\. - \['score .+ below .+', 'the best .+'\]"]),
        (OWN_PROGRAMS[1], [r"Ada Lovelace .* \[1\]\. - notes\.md"]),
    ],
    ids=["guide", "streaming", "back end", "own graph"],
)
def test_programs_print_what_they_promise(
    program: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(program, "document", "exec"), {})  # noqa: S102 - what a reader would run
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(lines)
    for line, expected in zip(printed, lines, strict=True):
        assert re.fullmatch(expected, line), line


def test_all_programs_are_run() -> None:
    assert (len(GUIDE_PROGRAMS), len(OWN_PROGRAMS)) == (2, 2)


def test_back_ends_are_built_as_shown() -> None:
    (program,) = code(GUIDE, "py")
    given = {"evaluator": FakeEvaluator(), "quoter": FakeQuoter(), "chat_model": FakeChatModel()}
    exec(compile(program, "document", "exec"), given)  # noqa: S102 - builds, loads nothing
    assert {"EmbeddedReflection", "PromptedReflection"} <= set(given)
