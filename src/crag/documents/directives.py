"""How directives and roles of Sphinx and MyST are read, and notes, with their titles.

One table for reStructuredText, MyST and the notes of other dialects of Markdown. What it does not
name is shown as it is written, as code.
"""

import re
from html import escape
from typing import Literal

Reading = Literal["unseen", "code", "note", "since", "titled", "signature", "holder"]

NOTES = {"note", "tip", "hint", "warning", "important", "caution", "danger", "attention", "error",
         "info", "todo", "question", "example", "abstract", "seealso"}  # fmt: skip
"""What shows its own name as a title, and its argument as text."""
_SINCE = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
}
_UNSEEN = {"toctree", "contents", "include", "literalinclude", "raw", "index", "image", "meta",
           "currentmodule", "module", "role", "program", "autosummary", "automodule", "highlight",
           "testsetup", "testcleanup", "youtube", "rst-class", "graphviz", "mermaid"}  # fmt: skip
_CODE = {"code", "code-block", "sourcecode", "parsed-literal", "doctest", "testcode", "testoutput",
         "prompt", "console", "productionlist", "math"}  # fmt: skip
_TITLED = {"admonition", "topic", "rubric", "sidebar", "dropdown", "tab-item", "card", "details",
           "tab", "group-tab", "figure", "table", "list-table", "csv-table"}  # fmt: skip
_HOLDERS = {"tabs", "tab-set", "grid", "container", "compound", "only", "ifconfig", "hlist",
            "epigraph", "glossary", "grid-item"}  # fmt: skip
"""What has no argument, or one that is no text."""
_OF_CODE = {"function", "class", "method", "attribute", "data", "exception", "decorator", "option",
            "describe", "object", "envvar", "confval", "staticmethod", "classmethod", "property",
            "type", "macro", "struct", "var", "member", "command"}  # fmt: skip
_LABELLED = re.compile(r"(.*\S)\s*<[^<>]*>", re.DOTALL)
_TARGET = re.compile(r"[\w./:-]*[a-z\d][\w./: -]*")
_AS_TEXT = {"abbr", "term", "menuselection", "guilabel", "download", "sub", "dfn", "sup"}
_TITLES = {"ref", "doc", "numref", "any"}
_SERIES = {"issue": "#", "pr": "#", "gh": "#", "pep": "PEP ", "rfc": "RFC ", "cve": "CVE-"}
"""Roles that show what they number."""


def reading_of(name: str, argument: str) -> tuple[Reading, str, str]:
    """Return how a directive is read, the title above what it holds, and the text it begins with.

    Of code, the title is its language.
    """
    short = name.rpartition(":")[2].lower()
    if name.lower() in NOTES:
        return "note", "See also" if short == "seealso" else short.capitalize(), argument
    if short in _SINCE:
        version, text = [*argument.split(maxsplit=1), "", ""][:2]
        return "since", f"{_SINCE[short]} {version}", text
    if short in _UNSEEN or short in _HOLDERS:
        return "unseen" if short in _UNSEEN else "holder", "", ""
    if short in _OF_CODE or short.startswith("auto"):
        return "signature", argument, ""
    if short in _TITLED:
        return "titled", argument, ""
    return "code", argument if short in _CODE else "", ""


def role_as_html(name: str, text: str) -> str:
    """Return what readers see of a role, as HTML."""
    text, short = " ".join(text.split()), name.rpartition(":")[2].lower()
    shown = text.removeprefix("!")
    if label := _LABELLED.fullmatch(text):
        shown = label[1]
    elif short in _TITLES:
        shown = _as_words(text)
    elif series := _SERIES.get(short):
        shown = f"{series}{text.removeprefix(series)}"
    elif short == "sup" and len(text) == 1:
        shown = f"^{text}"
    elif short not in _AS_TEXT:
        name = shown[1:].rpartition(".")[2] if shown.startswith("~") else shown
        return f"<code>{escape(name)}</code>"
    return escape(shown)


def _as_words(target: str) -> str:
    """Return what to show of a reference whose title is in another file: `exit-codes` as words.

    What may be a name in code, as it has capitals or brackets, stays as it is.
    """
    if not _TARGET.fullmatch(target) or target != target.lower():
        return target.lstrip("~!/")
    return re.sub(r"[-_]+", " ", target.rpartition("/")[2].rpartition(":")[2])
