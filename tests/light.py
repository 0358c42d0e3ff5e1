"""The wheel, and an environment that holds it and what it requires, made offline."""

import shutil
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution, distributions
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EPOCH = 1_700_000_000
"""When the distributions are said to be built, in seconds of UTC."""


def built(folder: Path) -> list[Path]:
    """Build source distribution and wheel as `make dist` does, from what the Dockerfile copies."""
    context, output = folder / "context", folder / "dist"
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
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    made: list[Path] = module.build(context, output, EPOCH, "--no-isolation")
    return made


def installed(wheel: Path, environment: Path, extra: str = "") -> Path:
    """Install a wheel, link what it requires from here; return the programs' folder."""
    venv.create(environment, symlinks=True)
    programs = environment / "bin"
    (packages,) = environment.glob("lib/python*/site-packages")
    command = [sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet"]
    command += ["--no-deps", "--no-index", "--no-compile", wheel]
    subprocess.run(command, check=True, capture_output=True)
    (metadata,) = packages.glob("*.dist-info")
    needed = required(PathDistribution(metadata).requires or (), extra)
    owners = Counter(name for one in distributions() for name in names(one))
    for one in needed:
        link(one, packages, {name for name in names(one) if owners[name] == 1})
    return programs


def required(requirements: Iterable[str], extra: str = "") -> list[Distribution]:
    """Return the distributions here that meet requirements, and those that these require."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    waiting = [(Requirement(text), {"", extra}) for text in requirements]
    while waiting:
        one, extras = waiting.pop()
        key = (one.name, frozenset(one.extras))
        marked = one.marker is None or any(one.marker.evaluate({"extra": it}) for it in extras)
        if marked and key not in found:
            found[key] = distribution(one.name)
            texts = found[key].requires or ()
            waiting += [(Requirement(text), {"", *one.extras}) for text in texts]
    return list({one.name.lower(): one for one in found.values()}.values())


def names(one: Distribution) -> set[str]:
    """Return the files and folders of a distribution that lie beside those of others."""
    return {file.parts[0] for file in one.files or ()} - {".."}  # Programs lie outside.


def link(one: Distribution, packages: Path, own: set[str]) -> None:
    """Link what is the distribution's own, and of shared folders its files one by one."""
    for name in own:
        (packages / name).symlink_to(Path(str(one.locate_file(name))))
    for file in one.files or ():
        if file.parts[0] not in {*own, ".."}:
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(file.locate())))
