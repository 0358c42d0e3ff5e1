"""Build the documentation site into `build/site`: the documents, and a page for every module.

The pages keep the folders of the repository, so that the links between documents hold. Their order
stands in `zensical.toml`; the modules come from the installed package. What Zensical does not check
fails here: a link to a file that is not there, a public name without an entry, and anything that a
page loads from elsewhere.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "zensical.toml"
BUILD = ROOT / "build"
PAGES, SITE = BUILD / "pages", BUILD / "site"
OTHERS = ("crag.papers", "crag.cli")
"""The papers are no part of the product; the commands have a page as they are typed."""
REFERENCE = {"Reference": "api"}
"""The entry of the navigation in whose place the pages of the modules stand."""
_LINK = re.compile(r"(?:\]\(|\b(?:src|srcset)=\")([^)\s#\"]+)")
_DIAGRAM = re.compile(r"```mermaid\n.*?```", re.DOTALL)
_PROGRAM = re.compile(r"\[`?([\w.]+\.py)`?\]\(\1\)")
_LOADED = "//script/@src | //img/@src | //iframe/@src | //source/@src | //link/@href"


@cache
def modules() -> Mapping[str, Path]:
    """Return the file of every public module of the product by its dotted name."""
    spec = find_spec("crag")
    package = Path(str(spec and spec.origin)).parent
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if not name.startswith(OTHERS) and "._" not in name:
            found[name] = path
    return found


def public_names(path: Path) -> list[str]:
    """Return what a module lists in `__all__`, else what it defines without an underscore."""
    names = list[str]()
    for statement in ast.parse(path.read_text("utf-8")).body:
        match statement:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
            case ast.Assign(targets=targets):
                nodes = [node for target in targets for node in ast.walk(target)]
                names += [node.id for node in nodes if isinstance(node, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return list(dict.fromkeys(name for name in names if not name.startswith("_")))


def page_of(module: str) -> str:
    """Return the page of a module; a package heads a folder of that name."""
    package = modules()[module].name == "__init__.py"
    return f"api/{module}{'/index' if package else ''}.md"


def navigation() -> list[Any]:
    """Return the pages in their order, with those of the commands and the modules."""
    project = tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]
    reference = [{"Commands": "api/commands.md"}, {"crag": _pages_below("crag")}]
    return [{"Reference": reference} if one == REFERENCE else one for one in project["nav"]]


def documents(entries: Sequence[Any]) -> list[str]:
    """Return the pages of a navigation."""
    listed = list[str]()
    for entry in entries:
        below = next(iter(entry.values())) if isinstance(entry, dict) else entry
        listed += [below] if isinstance(below, str) else documents(below)
    return listed


def problems(site: Path) -> list[str]:
    """Return what a built site lacks: targets of links, entries of names; and what it loads."""
    return sorted({*_broken(site), *_missing(site)})


def main() -> None:
    """Write the pages, have Zensical build them, and check what it built."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    entries = navigation()
    for name in documents(entries):
        if not name.startswith("api/"):
            _copy(name)
    _write_reference()
    for path in ("docs/site.css", "src/crag/serve/static/icon.svg"):
        shutil.copy(ROOT / path, PAGES)
    configuration = CONFIGURATION.read_text("utf-8")
    place = next(place for place, entry in enumerate(entries) if "Reference" in entry)
    configuration = configuration.replace(_toml(REFERENCE), _toml(entries[place]))
    (BUILD / CONFIGURATION.name).write_text(configuration, "utf-8")
    _build()
    if found := problems(SITE):
        sys.exit("\n".join(["The site is not whole:", *found]))
    sys.stdout.write(f"{SITE.relative_to(ROOT)}: {len(documents(entries))} pages\n")


def _pages_below(package: str) -> list[Any]:
    """Return the page of a package, those of its modules, and those of the packages in it."""
    children = [one for one in modules() if one.rpartition(".")[0] == package]
    packages = [one for one in children if modules()[one].name == "__init__.py"]
    pages = [{one.rpartition(".")[2]: page_of(one)} for one in children if one not in packages]
    return [page_of(package), *pages, *({one: _pages_below(one)} for one in packages)]


def _copy(name: str) -> None:
    """Copy a document with the files that it links to; those in Markdown are pages themselves."""
    text = (ROOT / name).read_text("utf-8")
    if _DIAGRAM.search(text):  # What draws it in a browser would be loaded from elsewhere.
        _draw_graph((PAGES / name).parent / "graph.png")
        text = _DIAGRAM.sub("![The graph, from the question to the answer](graph.png)", text)
    for linked in {unquote(link) for link in _LINK.findall(text)}:
        path = (ROOT / name).parent / linked
        if path.is_file() and path.suffix != ".md":
            _place(path)
    for program in dict.fromkeys(_PROGRAM.findall(text)):
        code = ((ROOT / name).parent / program).read_text("utf-8")
        text += f"\n## {program}\n\n```python\n{code}```\n"
    (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
    (PAGES / name).write_text(text, "utf-8")


def _place(path: Path) -> None:
    target = PAGES / path.resolve().relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def _draw_graph(path: Path) -> None:
    from crag.graph import build_crag
    from crag.papers.views import draw_graph
    from crag.parts import Parts
    from crag.testing import FakeEvaluator, FakeQuoter, FakeRetriever

    parts = Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), quoter=FakeQuoter())
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_graph(build_crag(parts)).save(path)


def _write_reference() -> None:
    """Write the page of the commands, and for each module one that mkdocstrings fills."""
    command = [sys.executable, "-m", "typer", "crag.papers.commands", "utils", "docs"]
    said = subprocess.run([*command, "--name", "crag"], check=True, capture_output=True, text=True)
    texts = {"api/commands.md": re.sub("^crag ", "    crag ", said.stdout, flags=re.MULTILINE)}
    texts |= {page_of(name): f"---\ntitle: {name}\n---\n\n::: {name}\n" for name in modules()}
    for name, text in texts.items():
        (PAGES / name).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / name).write_text(text, "utf-8")


def _toml(entry: Any) -> str:
    if isinstance(entry, dict):
        pairs = (f"{json.dumps(key)} = {_toml(value)}" for key, value in entry.items())
        return f"{{ {', '.join(pairs)} }}"
    return f"[{', '.join(map(_toml, entry))}]" if isinstance(entry, list) else json.dumps(entry)


def _build() -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=BUILD, check=False, capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode or "griffe:" in said:  # What it cannot read of a docstring is a warning.
        sys.exit(said)


def _broken(site: Path) -> Iterator[str]:
    """Yield every link that leads nowhere, and what is loaded from elsewhere."""
    for path in (one for one in sorted(site.rglob("*.html")) if one.is_file()):
        name = path.relative_to(site)
        for address in _page(path).xpath(_LOADED):
            if urlsplit(str(address)).netloc:
                yield f"{name} loads {address}"
        for address in _page(path).xpath("//a/@href | //img/@src | //source/@srcset"):
            if not _leads_somewhere(site, path, address):
                yield f"{name} links to {address}"


def _leads_somewhere(site: Path, path: Path, address: str) -> bool:
    scheme, host, linked, _, fragment = urlsplit(str(address))
    if scheme or host:
        return True
    base = site if linked.startswith("/") else path.parent
    target = (base / unquote(linked).lstrip("/")).resolve() if linked else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return False
    return not fragment or target.suffix != ".html" or unquote(fragment) in _anchors(target)


def _missing(site: Path) -> Iterator[str]:
    """Yield every public name of the product that its page lacks."""
    for module, path in modules().items():
        page = site / page_of(module).removesuffix(".md").removesuffix("/index") / "index.html"
        entries = _anchors(page) if page.is_file() else ()
        for name in public_names(path):
            if f"{module}.{name}" not in entries:
                yield f"{module}.{name} has no entry"


@cache
def _page(path: Path) -> Any:
    from lxml import html

    return html.fromstring(path.read_bytes())


@cache
def _anchors(path: Path) -> frozenset[str]:
    return frozenset(_page(path).xpath("//@id"))


if __name__ == "__main__":
    main()
