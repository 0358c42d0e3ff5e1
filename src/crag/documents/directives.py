"""How directives and roles of Sphinx and MyST are read, and notes, with their titles.

One table for reStructuredText, MyST and the notes of other dialects of Markdown. What it does not
name is shown as it is written, as code.
"""

import re
from html import escape
from typing import Literal

Reading = Literal["unseen", "code", "note", "since", "titled", "signature", "holder"]

NOTES = {"note", "tip", "hint", "warning", "important", "caution", "danger", "attention", "error",
         "info", "todo", "success", "question", "example", "abstract", "failure", "bug", "quote",
         "seealso", "summary"}  # fmt: skip
"""What shows its own name as a title, and its argument as text."""
_SINCE = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
}
_UNSEEN = {"toctree", "contents", "include", "literalinclude", "raw", "index", "image",
           "currentmodule", "module", "meta", "role", "program", "autosummary", "automodule",
           "highlight", "default-role", "tabularcolumns", "sectnum", "testsetup", "testcleanup",
           "tableofcontents", "youtube", "title", "rst-class", "cssclass", "activate-tab",
           "bibliography", "plot", "graphviz", "mermaid", "sectionauthor",
           "codeauthor"}  # fmt: skip
_CODE = {"code", "code-block", "sourcecode", "parsed-literal", "ipython", "testcode", "doctest",
         "testoutput", "prompt", "console", "productionlist", "code-cell", "math"}  # fmt: skip
_TITLED = {"admonition", "topic", "rubric", "sidebar", "dropdown", "tab-item", "card", "details",
           "tab", "group-tab", "collapse", "grid-item-card", "centered", "figure", "table",
           "list-table", "csv-table", "exercise", "solution", "proof", "theorem", "definition",
           "faq", "accordion", "spoiler", "collapsible"}  # fmt: skip
_HOLDERS = {"tabs", "tab-set", "tab-set-code", "grid", "container", "compound", "only", "ifconfig",
            "hlist", "epigraph", "highlights", "pull-quote", "card-body", "glossary", "div", "html",
            "grid-item", "figure-md", "margin", "line-block"}  # fmt: skip
"""What has no argument, or one that is no text."""
_OF_CODE = {"function", "class", "method", "attribute", "data", "exception", "decorator", "option",
            "describe", "object", "envvar", "confval", "setting", "cmdoption", "staticmethod",
            "classmethod", "property", "type", "macro", "struct", "var", "member", "command",
            "program-option", "opcode", "pdbcommand"}  # fmt: skip
_LABELLED = re.compile(r"(.*\S)\s*<[^<>]*>", re.DOTALL)
_TARGET = re.compile(r"[\w./:-]*[a-z\d][\w./: -]*")
_AS_TEXT = {"abbr", "term", "menuselection", "guilabel", "download", "sub", "subscript", "dfn",
            "emphasis", "title-reference", "cite", "sup", "superscript", "strong"}  # fmt: skip
_TITLES = {"ref", "doc", "numref", "any"}
_SERIES = {"issue": "#", "pr": "#", "gh": "#", "bpo": "bpo-", "pep": "PEP ", "rfc": "RFC ",
           "cve": "CVE-", "cwe": "CWE-"}  # fmt: skip
"""Roles that show what they number."""


def reading_of(name: str, argument: str) -> tuple[Reading, str]:
    """Return how a directive is read, and what stands as a title above what it holds."""
    short = name.rpartition(":")[2].lower()
    if name.lower() in NOTES:
        return "note", "See also" if short == "seealso" else short.capitalize()
    if short in _SINCE:
        return "since", _SINCE[short]
    if short in _OF_CODE or short.startswith("auto"):
        return ("unseen", "") if short in _UNSEEN else ("signature", argument)
    ways: dict[str, Reading] = {
        **dict.fromkeys(_UNSEEN, "unseen"),
        **dict.fromkeys(_TITLED, "titled"),
        **dict.fromkeys(_HOLDERS, "holder"),
    }
    way = ways.get(short, "code")
    return way, argument if way == "titled" or short in _CODE else ""


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
    elif short in {"sup", "superscript"} and len(text) == 1:
        shown = f"^{text}"
    elif short == "strong":
        return f"<strong>{escape(text)}</strong>"
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
