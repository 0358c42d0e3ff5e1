"""The prompts, one Markdown file each, and nothing but their loading.

A file has a ``[system]`` section if it needs one and a ``[user]`` section; ``$name`` marks what is
filled in. Values are filled in last and never read as templates themselves.
"""

from functools import cache
from importlib.resources import files
from string import Template

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

_ROLES = {"system": SystemMessage, "user": HumanMessage}


def render(name: str, **values: str) -> list[AnyMessage]:
    """Fill in the prompt `name` and return its messages; a missing value raises `KeyError`."""
    return [_ROLES[role](Template(text).substitute(values)) for role, text in _sections(name)]


@cache
def _sections(name: str) -> list[tuple[str, str]]:
    text = files("crag.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
    sections: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        role = line.strip("[]")
        if line == f"[{role}]" and role in _ROLES:
            sections.append((role, []))
        else:
            sections[-1][1].append(line)
    return [(role, "\n".join(lines).strip()) for role, lines in sections]
