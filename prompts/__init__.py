"""The prompts, one Markdown file each, and a folder of your own in their place.

A file has one section for each message: ``[system]`` if it needs one, then ``[user]``; few-shot
prompts may alternate ``[user]`` and ``[assistant]``. ``$name`` marks what is filled in, and ``$$``
is a dollar sign. A section is taken to the letter: from the line below its mark to the end of the
file, or to the blank line above the next mark; only the file's last line break is no part of it.
Values are filled in last and never read as templates themselves.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import NamedTuple, Self

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from crag.errors import PromptError, did_you_mean

LARGEST = 64 * 1024
"""Bytes of a prompt file."""
_ROLES = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_MARKS = {f"[{role}]": role for role in _ROLES}
_IGNORED = "readme.md"


class Use(NamedTuple):
    """What a prompt is for."""

    where: str
    """The step that asks it, and when."""
    needed: tuple[str, ...]
    """Placeholders that its text must have: each itself, or its `published_` form."""
    optional: tuple[str, ...] = ()
    """Placeholders that its text may have."""


_TASK = ("knowledge", "question")
_LABELLED = ("question", "knowledge")
_FACT = ("fact", "knowledge")
USES: Mapping[str, Use] = MappingProxyType(
    {
        "answer_default": Use("generate, task default", _TASK, ("not_found",)),
        "answer_correct": Use("generate, if the action is Correct, default", _TASK),
        "answer_doubtful": Use("generate, if strips score low, default", _TASK, ("not_found",)),
        "answer_words": Use("generate again, after an answer without words", _TASK, ("not_found",)),
        "answer_popqa": Use("generate, task popqa", _TASK),
        "answer_pubhealth": Use("generate, task pubhealth", _TASK, ("instruction",)),
        "answer_arc": Use(
            "generate, task arc", (*_TASK, "options"), ("published_options", "instruction")
        ),
        "answer_biography": Use("generate, task biography", _TASK),
        "answer_asqa": Use("generate, task asqa", _TASK, ("not_found", "instruction")),
        "answer_own_knowledge": Use("generate without knowledge, default and popqa", ("question",)),
        "answer_own_pubhealth": Use("generate without knowledge, task pubhealth", ("question",)),
        "answer_own_arc": Use(
            "generate without knowledge, task arc", ("question", "options"), ("published_options",)
        ),
        "answer_own_biography": Use("generate without knowledge, task biography", ("question",)),
        "answer_own_asqa": Use("generate without knowledge, task asqa", ("question",)),
        "contextualize": Use("contextualize, a follow-up in a chat", ("history", "question")),
        "rewrite_turns": Use("rewrite, task default", ("question",)),
        "rewrite_default": Use("rewrite, all other tasks", ("question",)),
        "rewrite_pubhealth": Use("rewrite, task pubhealth", ("question",)),
        "rewrite_arc": Use("rewrite, task arc", ("question",)),
        "grade_direct": Use("crag bench, evaluator chat-direct and binary_llm", _LABELLED),
        "grade_chain_of_thought": Use("crag bench, evaluator chat-chain-of-thought", _LABELLED),
        "grade_few_shot": Use("crag bench, evaluator chat-few-shot", _LABELLED),
        "grade_levels": Use("crag bench, evaluator chat-levels", _LABELLED),
        "grade_batch": Use("evaluator chat", _LABELLED),
        "reflect_retrieve": Use("prompted reflection, before an answer", ("question",)),
        "reflect_next": Use("prompted reflection, before a sentence", _LABELLED),
        "reflect_answer": Use("prompted reflection, from a passage", _LABELLED),
        "reflect_answer_alone": Use("prompted reflection, without one", _LABELLED),
        "reflect_segment": Use("prompted reflection, long form, from a passage", _LABELLED),
        "reflect_segment_alone": Use("prompted reflection, long form, without one", _LABELLED),
        "judge_facts": Use("crag bench --fact-judge, to list facts", ("answer",)),
        "judge_fact": Use(
            "crag bench --fact-judge, to check one", ("fact", "knowledge"), ("topic",)
        ),
        "judge_answer": Use(
            "crag evaluate --judge", ("question", "answer", "knowledge"), ("right",)
        ),
        "critic_label": Use(
            "crag reflect-data critic --chat", ("task", "labels", "case"), ("examples",)
        ),
    }
)
"""Every prompt by its name, which is that of its file."""


class Prompt(NamedTuple):
    """One prompt that was read and checked."""

    sections: tuple[tuple[str, str], ...]
    """Role and text of each message."""
    source: str
    """Its bytes, decoded."""
    path: Path | None = None
    """Its file; None for a packaged one."""


class Prompts:
    """All prompts: the packaged ones, or those of a folder in their place."""

    def __init__(self, replaced: Mapping[str, Prompt] | None = None) -> None:
        self._replaced = dict(replaced or {})

    @classmethod
    def from_folder(cls, folder: str | Path) -> Self:
        """Read ``NAME.md`` for each prompt to replace; a prompt without a file stays packaged.

        Raises:
            PromptError: there is no such folder, or no prompt in it; a file is no prompt's, is too
                large, is no UTF-8, or has a section or a placeholder that it cannot have, or lacks
                one that it must have. The message names file and line.
        """
        folder = Path(folder)
        if folder.is_file():
            raise PromptError(folder, "it is a file; name the folder that it is in")
        if not folder.is_dir():
            raise PromptError(folder, "there is no such folder")
        found = {
            path.stem: _read(path)
            for path in sorted(folder.glob("*.md"))
            if path.name.lower() != _IGNORED
        }
        if not found:
            known = ", ".join(f"{name}.md" for name in USES)
            raise PromptError(folder, f"it has no prompt; there are {known}")
        return cls(found)

    def render(self, name: str, **values: str) -> list[AnyMessage]:
        """Fill in the prompt `name` and return its messages; a missing value raises `KeyError`."""
        return [
            _ROLES[role](Template(text).substitute(values))
            for role, text in self.prompt(name).sections
        ]

    def prompt(self, name: str) -> Prompt:
        """Return a prompt as it was read."""
        return self._replaced.get(name) or _PACKAGED[name]

    def replaces(self, name: str) -> bool:
        """Say whether a prompt stands in the place of the packaged one of this name."""
        return name in self._replaced

    @property
    def identity(self) -> str:
        """Twelve hexadecimal digits that change with any replaced prompt; empty if none is."""
        if not self._replaced:
            return ""
        told = [(name, prompt.source) for name, prompt in sorted(self._replaced.items())]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"Prompts({', '.join(sorted(self._replaced)) or 'packaged'})"


def _read(path: Path) -> Prompt:
    if path.stem not in USES:
        near = did_you_mean(path.name, [f"{name}.md" for name in USES])
        raise PromptError(path, f"no prompt has this name; {near}")
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise PromptError(path, f"it has {size:,} bytes; at most {LARGEST:,} are read")
        content = path.read_bytes()
    except OSError as error:
        raise PromptError(path, f"it cannot be read: {error.strerror}") from None
    try:
        source = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PromptError(path, "it is not UTF-8; save it as UTF-8", line) from None
    return parse(source, path.stem, path)


def parse(source: str, name: str, path: Path | None = None) -> Prompt:
    """Read a prompt and check it against its use.

    Raises:
        PromptError: as `Prompts.from_folder`.
    """
    place = path or Path(f"{name}.md")
    sections: list[tuple[str, int, list[str]]] = []
    for number, line in enumerate(source.removesuffix("\n").split("\n"), start=1):
        if (mark := line.rstrip()) in _MARKS:
            if sections and sections[-1][2][-1:] == [""]:
                sections[-1][2].pop()
            sections.append((_MARKS[mark], number, []))
        elif sections:
            sections[-1][2].append(line)
        elif line:
            problem = f"it must begin with one of {', '.join(_MARKS)}, alone on its line"
            raise PromptError(place, problem, number)
    if not sections:
        raise PromptError(place, f"it is empty; it needs {' or '.join(_MARKS)} and a text", 1)
    _check_roles(place, sections)
    _check_placeholders(place, sections, USES[name])
    return Prompt(tuple((role, "\n".join(lines)) for role, _, lines in sections), source, path)


def _check_roles(place: Path, sections: list[tuple[str, int, list[str]]]) -> None:
    for position, (role, number, lines) in enumerate(sections):
        if role == "system" and position:
            raise PromptError(place, "[system] can only come first", number)
        if not "".join(lines).strip():
            raise PromptError(place, f"the section [{role}] is empty", number)
    role, number, _ = sections[-1]
    if role != "user":
        raise PromptError(place, f"it ends with [{role}]; the last section must be [user]", number)


def _check_placeholders(place: Path, sections: list[tuple[str, int, list[str]]], use: Use) -> None:
    allowed, found = (*use.needed, *use.optional), set[str]()
    for _, number, lines in sections:
        for line, text in enumerate(lines, start=number + 1):
            template = Template(text)
            if not template.is_valid():
                problem = "a dollar sign begins no placeholder; write $$ for the sign itself"
                raise PromptError(place, problem, line)
            unknown = [one for one in template.get_identifiers() if one not in allowed]
            if unknown:
                named = ", ".join(f"${one}" for one in allowed)
                problem = f"${unknown[0]} is not filled in here; there are {named}, and $$ for $"
                raise PromptError(place, problem, line)
            found.update(template.get_identifiers())
    missing = [f"${one}" for one in use.needed if not {one, f"published_{one}"} & found]
    if missing:
        raise PromptError(place, f"it lacks {', '.join(missing)}", sections[0][1])


_PACKAGED = {
    name: parse(files("crag.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8"), name)
    for name in USES
}
PACKAGED = Prompts()
"""The prompts that ship."""
