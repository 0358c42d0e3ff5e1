"""The audit of the published files, on a checkout of the same shape with programs of our own."""

from pathlib import Path
from types import ModuleType

import pytest

from crag.papers.released import audit_published
from tests.papers.loading.conftest import SUBJECTS
from tests.papers.released.published_folders import write_published

INFERENCE = """
import torch_of_the_authors

TASK_INST = {"pubqa": "Is it so?", "arc_challenge": "Choose."}
threshold = missing_name if False else 0


def format_prompt(i, task, question, paragraph=None, modelname="selfrag_llama"):
    asked = TASK_INST.get(task, "Tell:") + " " + question
    if task == "arc_challenge":
        with open("../data/arc_challenge/choices") as file:
            choices = file.readlines()[i].strip()
        for letter in "ABCDE":
            choices = choices.replace(letter + ": ", "\\n" + letter + ": ")
        return "Read: " + paragraph + "\\n" + asked + choices
    if modelname == "llama":
        return "For $5 read " + paragraph + ", then: " + asked
    return asked + "<paragraph>" + paragraph + "</paragraph>"
"""
PREPARATION = """
def extract_strips_from_psg(psg, mode="excerption"):
    if mode == "fixed_num":
        words = psg.split(" ")
        strips = [words[at : at + 50] for at in range(0, len(words), 50)]
        if len(strips[-1]) < 10:
            strips[-2] = strips[-2] + strips.pop()
        return [" ".join(strip) for strip in strips]
    pieces = [piece for part in psg.split("?") for piece in part.split(". ")]
    strips = []
    for piece in pieces:
        if piece in strips:
            continue
        if not strips or len(piece.split()) > 5:
            strips.append(piece)
        else:
            strips[-1] += piece
    return [" ".join(strips[at : at + 3]) for at in range(0, len(strips), 3)]
"""


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return audit_published


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    write_published(tmp_path)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "CRAG_Inference.py").write_text(INFERENCE, "utf-8")
    preparation = tmp_path / "scripts" / "internal_knowledge_preparation.py"
    preparation.write_text(PREPARATION, "utf-8")
    return tmp_path


def test_prompts_and_strips_are_equal_to_the_letter(audit: ModuleType, checkout: Path) -> None:
    words = " ".join(f"w{number}" for number in range(70))
    (checkout / "data" / "bio" / "retrieved_psgs").write_text(
        "\n".join(f"{name} {words} [sep] {words} a. b [sep] a few" for name, _, _ in SUBJECTS),
        "utf-8",
    )
    counts = {count.what: count for count in audit.compare(checkout)}
    prompts = {name: count for name, count in counts.items() if name.startswith("prompts")}
    assert {name: (count.equal, count.runs) for name, count in prompts.items()} == {
        "prompts of popqa": (24, 24),
        "prompts of bio": (24, 24),
        "prompts of pubqa for selfrag_llama": (24, 24),
        "prompts of pubqa for llama": (24, 24),
        "prompts of arc_challenge": (24, 24),
    }
    strips = [count for name, count in counts.items() if not name.startswith("prompts")]
    assert [(count.equal, count.runs, count.failed) for count in strips] == [
        (16, 16, 8), (16, 16, 8), (24, 24, 0),
    ]  # fmt: skip


def test_another_wording_between_two_questions_is_counted(
    audit: ModuleType, checkout: Path
) -> None:
    program = checkout / "scripts" / "CRAG_Inference.py"
    program.write_text(INFERENCE.replace("return asked", "return str(i % 2) + asked"), "utf-8")
    found = next(audit.compare(checkout))
    assert (found.what, found.equal, found.runs) == ("prompts of popqa", 12, 24)


def test_every_fault_is_counted(audit: ModuleType, checkout: Path) -> None:
    data = checkout / "data"
    counts = {name: dict(audit.faults(data / name)) for name in audit.FOLDERS}
    assert counts["popqa"]["incorrect: questions with another's line"] == 3
    assert counts["popqa"]["ambiguous: questions with another's halves"] == 3
    assert counts["popqa"]["correct: questions with another's line"] == 0
    assert counts["popqa"]["incorrect: lines that disarming changes"] == 8
    assert counts["bio"]["ambiguous: lines with small letters"] == 8
    assert counts["bio"]["retrieved_psgs: lines with Self-CRAG's texts"] == 8
    assert counts["pubqa"]["incorrect: lines without the mark"] == 1
    assert counts["pubqa"]["incorrect: empty lines"] == 2
    assert counts["pubqa"]["questions with white space around"] == 2
    arc = counts["arc_challenge"]
    assert arc["incorrect: lines"] == 9
    assert arc["incorrect: lines to the official reader"] == 11
    assert arc["incorrect: lone carriage returns"] == 2
    assert arc["incorrect: questions with another's line"] == 8
    assert arc["ambiguous: questions with another's halves"] == 8
    assert arc["options with numbers for labels"] == 1
    assert (arc["questions with 3 options"], arc["questions with 5 options"]) == (1, 1)
