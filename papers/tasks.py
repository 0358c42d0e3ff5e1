"""The tasks of the papers: whatever one of their benchmarks changes, in one profile each."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from crag.correction.strips import joint_text, recompose
from crag.settings import DEFAULT, TaskProfile
from crag.state import strips_of_kind
from crag.text.untrusted import neutral

PaperTask = Literal["popqa", "pubhealth", "arc", "biography", "asqa"]
"""The tasks of the CRAG paper, and ASQA of Self-RAG's."""
Task = Literal["default", PaperTask]
AnswerKind = Literal["text", "verdict", "option", "long"]
"""How a reply is read: any text, true or false, the label of an option, or a long text."""

_OPTION = re.compile(r"\s*\(?([A-Z]|[1-9])[:.)]\)?\s+(\S.*)")
_FEWEST_OPTIONS, _FIRST = 2, ("A", "1")
_NUMBERS = frozenset("123456789")
_WHO_IS = re.compile(r"^who is (.+?)\??$", re.IGNORECASE)


def paper_format(state: Mapping[str, Any]) -> str:
    """Join the strips as the paper's prompts carry them.

    Line breaks are spaces, ``; `` stands between strips; both kinds of knowledge as
    ``Knowledge1: … [sep] Knowledge2: …``, the form of the official knowledge files.
    """
    internal, external = (
        "; ".join(neutral(strip["text"].replace("\n", " ")) for strip in recompose(strips))
        for strips in (strips_of_kind(state, "document"), strips_of_kind(state, "web"))
    )
    return joint_text(internal, external)


@dataclass(frozen=True, kw_only=True)
class PaperProfile(TaskProfile):
    """How one task is asked and answered."""

    settings: Mapping[str, object] = field(default_factory=dict)
    """What differs from the defaults of the settings, unless it is set explicitly."""
    cites: bool = False
    benchmark: bool = True
    correct_prompt: str = ""
    rewrite_prompt: str = "rewrite_default"
    knowledge: Callable[[Mapping[str, Any]], str] | None = paper_format
    split: Callable[[str], tuple[str, dict[str, str]]] | None = None
    """Splits from a question what is not to be retrieved for; None: it is taken whole."""
    answer: AnswerKind = "text"
    instruction: str = ""
    """What stands before the question in the instruction of Self-RAG's tuned models."""

    def split_apart(self, asked: str) -> tuple[str, dict[str, str]]:
        """Split what was asked into the question and its options."""
        return self.split(asked) if self.split else (asked, {})

    def instruction_for(self, question: str, options: Mapping[str, str] | None = None) -> str:
        """Return the instruction field of Self-RAG's prompt for a question, claim or request.

        Options are written as the released evaluation does: A to D, an empty one where it is
        missing, and no fifth. Without any, they stand in the question already.
        """
        found = lettered(options or {})
        lines = [f"\n{letter}: {found.get(letter, '')}" for letter in "ABCD"] if found else []
        return f"{self.instruction}{question}{''.join(lines)}"

    def values(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options as our prompts and the published ones write them."""
        return {
            "options": written(options) or "those that the question names",
            "published_options": published_options(options),
            "instruction": self.instruction,
        }


def split_options(asked: str) -> tuple[str, dict[str, str]]:
    """Split off the options below a question.

    Options are the last lines, two or more, that begin with ``A:``, ``B)``, ``(C)`` or ``1.``, in
    this order from A or 1 on. Any other question is returned whole. What stands above the first
    option is the question, also where it begins as an option does ("D. E. Knuth wrote …").
    """
    lines = asked.splitlines()
    found: list[tuple[str, str]] = []
    while lines and (option := _OPTION.fullmatch(lines[-1])):
        found.insert(0, (option[1], option[2].strip()))
        lines.pop()
        if option[1] in _FIRST:
            break
    question = "\n".join(lines).strip()
    labels = [label for label, _ in found]
    if not question or len(found) < _FEWEST_OPTIONS or not _in_order(labels):
        return asked, {}
    return question, dict(found)


def lettered(options: Mapping[str, str]) -> dict[str, str]:
    """Return options by letters: labels that are numbers become letters, 1 is A."""
    return {
        chr(ord("A") + int(label) - 1) if label in _NUMBERS else label: text
        for label, text in options.items()
    }


def written(options: Mapping[str, str]) -> str:
    """Write options as lines ``A: text``."""
    return lines_of(lettered(options))


def lines_of(options: Mapping[str, str]) -> str:
    """Write options as lines with their own labels."""
    return "\n".join(f"{label}: {text}" for label, text in options.items())


def published_options(options: Mapping[str, str]) -> str:
    """Write options as the official CRAG program does, from the line break before the first one.

    It breaks a line joined by ``; `` before whatever looks like a lettered label: the semicolons
    stay, labels that are numbers stay on one line, and a text that holds ``A: `` is broken there.
    """
    line = "; ".join(f"{label}: {text}" for label, text in options.items())
    return re.sub(r"(?=[A-E]: )", "\n", line)


def _in_order(labels: list[str]) -> bool:
    first = "A" if labels[0] == "A" else "1"
    return labels == [chr(ord(first) + place) for place in range(len(labels))]


def _name(question: str) -> str:
    """Return the name of ``Who is NAME?``: these questions hold nothing else (official code)."""
    return _WHO_IS.sub(r"\1", question)


_PAPER = {
    "max_answer_tokens": 100,
    "allow_own_knowledge": True,
    "respell": False,
}
_LABEL = {"max_new_tokens": 50}
_LONG = {"form": "long", "max_depth": 7, "max_new_tokens": 300}

TASKS: Mapping[str, TaskProfile] = MappingProxyType(
    {
        "default": DEFAULT,
        "popqa": PaperProfile(
            settings={**_PAPER, "upper": 0.592, "lower": -0.995, "titles": "none"},
            answer_prompt="answer_popqa",
        ),
        "pubhealth": PaperProfile(
            settings={**_PAPER, "upper": 0.5, "lower": -0.915, "titles": "passage", **_LABEL},
            answer_prompt="answer_pubhealth",
            own_prompt="answer_own_pubhealth",
            rewrite_prompt="rewrite_pubhealth",
            answer="verdict",
            closed=True,
            instruction=(
                "Is the following statement correct or not? Say true if it's correct; otherwise "
                "say false.\n\n## Input:\n\n"
            ),
        ),
        "arc": PaperProfile(
            settings={**_PAPER, "upper": 0.5, "lower": -0.915, "titles": "passage", **_LABEL},
            answer_prompt="answer_arc",
            own_prompt="answer_own_arc",
            rewrite_prompt="rewrite_arc",
            split=split_options,
            answer="option",
            closed=True,
            instruction=(
                "Given four answer candidates, A, B, C and D, choose the best answer choice."
                "\n\n### Input:\n"
            ),
        ),
        "biography": PaperProfile(
            settings={**_PAPER, "upper": 0.95, "lower": -0.91, "titles": "passage", **_LONG},
            answer_prompt="answer_biography",
            own_prompt="answer_own_biography",
            query=_name,
            answer="long",
        ),
        "asqa": PaperProfile(
            settings={"k": 5, "respell": False, "delta": 0.0, **_LONG},
            cites=True,
            answer_prompt="answer_asqa",
            own_prompt="answer_own_asqa",
            answer="long",
            instruction=(
                "Answer the following question. The question may be ambiguous and have multiple "
                "correct answers, and in that case, you have to provide a long-form answer "
                "including all correct answers.## Input:\n\n"
            ),
        ),
    }
)
"""By the name of the setting `task`. The thresholds are those of the official code where it has
them, of the paper otherwise, and belong to its T5 evaluator; form, depth and tokens are those of
the commands published with Self-RAG, as are the instructions, to the letter."""


def profile_of(task: str) -> TaskProfile:
    """Return the profile of a task; other names, such as `qa`, have the default profile."""
    return TASKS.get(task, DEFAULT)


def answer_of(task: str) -> AnswerKind:
    """Return how the reply to a task is read."""
    profile = profile_of(task)
    return profile.answer if isinstance(profile, PaperProfile) else "text"


def settings_of(task: str) -> Mapping[str, object]:
    """Return what a task sets."""
    profile = profile_of(task)
    return profile.settings if isinstance(profile, PaperProfile) else {}
