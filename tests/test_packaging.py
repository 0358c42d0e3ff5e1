"""The folders, the installed package and the wheel hold the same files."""

import shutil
import zipfile
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "": "src/crag", "graph": "graph", "nodes": "nodes", "papers": "papers", "prompts": "prompts",
}  # fmt: skip
MEASURED = {"recipes", "results", "tables", "README.md"}
"""Of `papers`, what is in the repository alone."""
SHIPPED = {
    ".py", ".md", ".json", ".typed", ".safetensors", ".onnx", ".html", ".css", ".js", ".svg",
    ".jsonl", ".sql", ".txt",
}  # fmt: skip


def shipped(folder: Path) -> set[Path]:
    """Return the files below a folder that belong to the package."""
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and (path.suffix in SHIPPED or path.name == "py.typed")
    }


def files_of_folders() -> set[str]:
    return {
        str(Path("crag", package, path))
        for package, folder in FOLDERS.items()
        for path in shipped(ROOT / folder)
        if not (package == "papers" and path.parts[0] in MEASURED)
    }


def test_the_installed_package_has_the_files_of_the_folders() -> None:
    spec = find_spec("crag")
    assert spec is not None
    assert spec.origin is not None
    found = {str(Path("crag", path)) for path in shipped(Path(spec.origin).parent)}
    missing = files_of_folders() - found
    assert not missing, f"installed package lacks {sorted(missing)}: run `make test` to reinstall"


@pytest.mark.nightly
def test_the_wheel_has_them_too_and_nothing_at_the_top_level(tmp_path: Path) -> None:
    """Build it as `make dist` does, from what the Dockerfile copies."""
    context, output = tmp_path / "context", tmp_path / "dist"
    context.mkdir()
    output.mkdir()
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *sources, target = line.split()[1:]
            for source in sources:
                if (ROOT / source).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(ROOT / source, context / target, ignore=ignored)
                else:
                    shutil.copy(ROOT / source, context / target)
    spec = spec_from_file_location("dist", ROOT / ".ci" / "dist.py")
    assert spec
    assert spec.loader
    dist = module_from_spec(spec)
    spec.loader.exec_module(dist)
    made: list[Path] = dist.build(context, output, 1_700_000_000, "--no-isolation")
    (wheel,) = (path for path in made if path.suffix == ".whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_of_folders()
