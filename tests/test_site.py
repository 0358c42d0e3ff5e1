"""The documentation site has every document and every public name; `make site` builds it."""

import re
import subprocess
import textwrap
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import crag

ROOT = Path(__file__).parents[1]


def loaded(path: Path) -> ModuleType:
    """Load a program that is in no package."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = loaded(ROOT / ".ci" / "site.py")
LISTED: list[str] = site.documents(site.navigation())


def written(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<html><body>{body}</body></html>")
    return path


def test_the_navigation_has_every_document_once() -> None:
    documents = {
        str(path.relative_to(ROOT))
        for folder in ("docs", "papers/results", "papers/tables")
        for path in (ROOT / folder).rglob("*.md")
    }
    of_the_root = {path.name for path in ROOT.glob("*.md")}
    assert documents | of_the_root <= set(LISTED)
    assert len(LISTED) == len(set(LISTED))
    assert LISTED[0] == "README.md"
    missing = [
        name for name in LISTED if not name.startswith("api/") and not (ROOT / name).exists()
    ]
    assert missing == []


def test_every_link_within_the_documents_leads_somewhere() -> None:
    texts = {name: (ROOT / name).read_text("utf-8") for name in LISTED if name[:4] != "api/"}
    broken: list[str] = []
    for name, text in texts.items():
        for place, anchor in re.findall(r"\]\(([^)\s:#]*)#([^)\s]+)\)", text):
            target = (ROOT / name).parent.joinpath(place).resolve() if place else ROOT / name
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            slugs = [
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
            ]
            if anchor not in slugs:
                broken.append(f"{name}: {place}#{anchor}")
    assert broken == []


def test_every_public_module_has_a_page() -> None:
    """The modules are listed here from the folders of the sources, there from what is installed."""
    folders = {"crag": "src/crag", "crag.graph": "graph", "crag.nodes": "nodes"}
    folders["crag.prompts"] = "prompts"
    modules = {
        ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts])
        for package, folder in folders.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    named = {name.removesuffix(".__init__") for name in modules}
    product = {name for name in named if not name.startswith("crag.cli")}
    assert set(site.modules()) == product
    assert {site.page_of(name) for name in product} | {"api/commands.md"} == {
        name for name in LISTED if name.startswith("api/")
    }


def test_the_names_of_a_module_are_those_that_it_offers(tmp_path: Path) -> None:
    assert site.public_names(Path(str(crag.__file__))) == crag.__all__
    module = tmp_path / "module.py"
    module.write_text(
        textwrap.dedent("""
        import os
        from os import path
        YES, NO = 1, 2
        Kind: type = int
        _hidden = 3
        async def ask(): ...
        class Mill: ...
        """)
    )
    assert site.public_names(module) == ["YES", "NO", "Kind", "ask", "Mill"]


def test_a_site_that_is_not_whole_is_told(tmp_path: Path) -> None:
    written(tmp_path / "guide" / "index.html", '<a href="#here" id="here"></a><a href="../"></a>')
    written(
        tmp_path / "index.html",
        """
        <a href="guide/#here"></a><a href="https://example.org"></a>
        <a href="guide/#there"></a><a href="no/such/page/"></a><img src="no.png">
        <script src="https://cdn.example/mermaid.js"></script>
        """,
    )
    found = site.problems(tmp_path)
    links = [one for one in found if "no entry" not in one]
    assert links == [
        "index.html links to guide/#there",
        "index.html links to no.png",
        "index.html links to no/such/page/",
        "index.html loads https://cdn.example/mermaid.js",
    ]
    assert "crag.open has no entry" in found
    assert "crag.evaluators.load_evaluator has no entry" in found


def test_a_name_with_an_entry_is_not_told(tmp_path: Path) -> None:
    written(tmp_path / "api" / "crag" / "index.html", '<i id="crag.open"></i>')
    found = site.problems(tmp_path)
    assert "crag.open has no entry" not in found
    assert "crag.Answer has no entry" in found


def test_make_installs_its_extra_and_builds_it(tmp_path: Path) -> None:
    command = ["make", "--no-print-directory", "--dry-run", "site", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--editable '.[site]'" in done.stdout
    assert done.stdout.endswith("bin/python .ci/site.py\n")
