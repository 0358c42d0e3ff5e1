"""The prompts, one Markdown file each, and a folder of your own in their place.

A file has one section for each message: ``[system]`` if it needs one, then ``[user]``; few-shot
prompts may alternate ``[user]`` and ``[assistant]``. ``$name`` marks what is filled in, and ``$$``
is a dollar sign. A section is taken to the letter: from the line below its mark to the end of the
file, or to the blank line above the next mark; only the file's last line break is no part of it.
Values are filled in last and never read as templates themselves.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Self

from crag.errors import PromptError, did_you_mean

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

FOLDERS: list[Traversable] = [files("crag.prompts")]
"""Where prompts are; the papers add the folder of theirs."""
_ROLES = ("system", "user", "assistant")
_MARK = re.compile(rf"^\[({'|'.join(_ROLES)})\][ \t]*\n?", re.MULTILINE)
_OPTIONAL = {
    "not_found", "instruction", "options", "published_options", "topic", "examples",
}  # fmt: skip
"""Placeholders that a prompt need not have."""


class Prompts:
    """All prompts: the packaged ones, or those of a folder in their place."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @classmethod
    def from_folder(cls, folder: str | Path) -> Self:
        """Take ``NAME.md`` of a folder for each prompt to replace; the others stay packaged.

        Raises:
            PromptError: there is no prompt in the folder, or one is none: it has another name, no
                sections, or lacks a placeholder. The message names the file.
        """
        folder = Path(folder)
        paths = [path for path in sorted(folder.glob("*.md")) if path.stem.lower() != "readme"]
        if not paths:
            raise PromptError(folder, f"there is no prompt, such as {', '.join(sorted(known()))}")
        for path in paths:
            _check(path)
        return cls(folder)

    def render(self, name: str, **values: str) -> "list[AnyMessage]":
        """Fill in the prompt `name`, read anew, and return its messages.

        Raises:
            PromptError: there is no such prompt, or it has a placeholder that no value fills.
        """
        place = self._place(name)
        from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

        messages = (SystemMessage, HumanMessage, AIMessage)
        kinds: dict[str, Any] = dict(zip(_ROLES, messages, strict=True))
        try:
            return [
                kinds[role](Template(text).substitute(values))
                for role, text in sections(place.read_text(encoding="utf-8-sig"))
            ]
        except (KeyError, ValueError) as error:
            filled = ", ".join(f"${one}" for one in values)
            problem = f"it cannot be filled in: {error}; there are {filled}, and $$ for $"
            raise PromptError(Path(str(place)), problem) from None

    def replaces(self, name: str) -> bool:
        """Say whether a prompt stands in the place of the packaged one of this name."""
        return self._folder is not None and (self._folder / f"{name}.md").is_file()

    @property
    def identity(self) -> str:
        """Twelve hexadecimal digits that change with any replaced prompt; empty if none is."""
        if self._folder is None:
            return ""
        told = [(path.name, path.read_bytes()) for path in sorted(self._folder.glob("*.md"))]
        return hashlib.sha256(repr(told).encode()).hexdigest()[:12]

    def __repr__(self) -> str:
        replaced = [path.stem for path in sorted(self._folder.glob("*.md"))] if self._folder else []
        return f"Prompts({', '.join(replaced) or 'packaged'})"

    def _place(self, name: str) -> Traversable:
        own = self._folder / f"{name}.md" if self._folder and self.replaces(name) else None
        place = own or known().get(f"{name}.md")
        if place is None:
            raise PromptError(Path(f"{name}.md"), f"there is none; {did_you_mean(name, known())}")
        return place


def known() -> dict[str, Traversable]:
    """Return the files of all packaged prompts by their names."""
    return _files(len(FOLDERS))


@cache
def _files(_: int) -> dict[str, Traversable]:
    return {
        place.name: place
        for folder in FOLDERS
        for place in folder.iterdir()
        if place.name.endswith(".md")
    }


def sections(text: str) -> Sequence[tuple[str, str]]:
    """Return role and text of each message of a prompt."""
    text = text.replace("\r\n", "\n").removesuffix("\n")
    head, *parts = _MARK.split(text)
    if head.strip() or not parts or parts[-2] != "user":
        marks = ", ".join(f"[{role}]" for role in _ROLES)
        raise ValueError(f"it must begin with one of {marks} and end with a section [user]")
    pairs = zip(parts[::2], parts[1::2], strict=True)
    *others, last = [(role, body) for role, body in pairs]
    return [*((role, body.removesuffix("\n").removesuffix("\n")) for role, body in others), last]


def _check(path: Path) -> None:
    """Refuse a file that cannot replace a prompt."""
    packaged = known().get(path.name)
    if packaged is None:
        near = did_you_mean(path.name, known())
        raise PromptError(path, f"no prompt has this name; {near}")
    try:
        written = Template("".join(text for _, text in sections(path.read_text("utf-8-sig"))))
    except (OSError, ValueError) as error:
        raise PromptError(path, f"it is no prompt: {error}") from None
    if not written.is_valid():
        raise PromptError(path, "a dollar sign begins no placeholder; write $$ for the sign itself")
    text = packaged.read_text(encoding="utf-8")
    found = {one.removeprefix("published_") for one in written.get_identifiers()}
    lacking = sorted(set(Template(text).get_identifiers()) - found - _OPTIONAL)
    if lacking:
        raise PromptError(path, f"it lacks {', '.join(f'${one}' for one in lacking)}")


PACKAGED = Prompts()
"""The prompts that ship."""
