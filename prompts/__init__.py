"""The prompts, one Markdown file each, and a folder of your own in their place.

A file has one section for each message: ``[system]`` if it needs one, then ``[user]``; few-shot
prompts may alternate ``[user]`` and ``[assistant]``. ``$name`` marks what is filled in, and ``$$``
is a dollar sign. A section is taken to the letter: from the line below its mark to the end of the
file, or to the blank line above the next mark; only the file's last line break is no part of it.
Values are filled in last and never read as templates themselves.
"""

import hashlib
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Self

from crag.errors import PromptError, did_you_mean

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

FOLDERS: list[Traversable] = [files("crag.prompts")]
"""Where prompts are; the papers add the folder of theirs."""
_MARK = re.compile(r"^\[(system|user|assistant)\][ \t]*\n?", re.MULTILINE)
_OPTIONAL = {
    "not_found", "instruction", "options", "published_options", "right", "topic", "examples",
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
        from langchain_core.messages import convert_to_messages

        own = self._folder / f"{name}.md" if self._folder and self.replaces(name) else None
        place = own or known().get(f"{name}.md")
        if place is None:
            raise PromptError(Path(f"{name}.md"), f"there is none; {did_you_mean(name, known())}")
        try:
            messages = [
                (role, Template(text).substitute(values)) for role, text in _sections(place)
            ]
        except (KeyError, ValueError) as error:
            filled = ", ".join(f"${one}" for one in values)
            problem = f"it cannot be filled in: {error}; there are {filled}, and $$ for $"
            raise PromptError(Path(str(place)), problem) from None
        return convert_to_messages(messages)  # type: ignore[return-value]

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


def known() -> dict[str, Traversable]:
    """Return the files of all packaged prompts by their names."""
    places = [place for folder in FOLDERS for place in folder.iterdir()]
    return {place.name: place for place in places if place.name.endswith(".md")}


def _sections(place: Traversable) -> list[tuple[str, str]]:
    """Return role and text of each message of a prompt."""
    text = place.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    head, *parts = _MARK.split(text)
    if head.strip() or not parts or parts[-2] != "user":
        problem = "it must begin with one of [system], [user], [assistant] and end with a [user]"
        raise ValueError(problem)
    *others, last = zip(parts[::2], parts[1::2], strict=True)
    return [*((role, body.removesuffix("\n").removesuffix("\n")) for role, body in others), last]


def _check(path: Path) -> None:
    """Refuse a file that cannot replace a prompt."""
    packaged = known().get(path.name)
    if packaged is None:
        raise PromptError(path, f"no prompt has this name; {did_you_mean(path.name, known())}")
    try:
        written = Template("".join(text for _, text in _sections(path)))
    except (OSError, ValueError) as error:
        raise PromptError(path, f"it is no prompt: {error}") from None
    if not written.is_valid():
        raise PromptError(path, "a dollar sign begins no placeholder; write $$ for the sign itself")
    found = {one.removeprefix("published_") for one in written.get_identifiers()}
    needed = set(Template(packaged.read_text("utf-8")).get_identifiers()) - _OPTIONAL
    if lacking := sorted(needed - found):
        raise PromptError(path, f"it lacks {', '.join(f'${one}' for one in lacking)}")


PACKAGED = Prompts()
"""The prompts that ship."""
