"""Build the wheel and the source distribution so that the same commit gives the same bytes.

setuptools takes the times in a wheel from SOURCE_DATE_EPOCH; in a source distribution it keeps
those of the files, their owner, and the time of the build, which are replaced here.
"""

import gzip
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(source: Path, output: Path, epoch: int, *options: str) -> list[Path]:
    """Build both from `source` into `output`, and return them; `epoch` is in seconds of UTC."""
    command = [sys.executable, "-m", "build", *options, "--outdir", str(output), str(source)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    (archive,) = output.glob("*.tar.gz")
    archive.write_bytes(repacked(archive.read_bytes(), epoch))
    return sorted(output.iterdir())


def repacked(archive: bytes, epoch: int) -> bytes:
    """Return a gzipped tar archive with its members sorted, and without times and owners."""
    packed = BytesIO()
    with (
        tarfile.open(fileobj=BytesIO(archive)) as old,
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=epoch, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid = epoch, 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def main() -> None:
    """Build the commit that is checked out into `dist/`."""
    command = ["git", "log", "-1", "--format=%ct"]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    build(ROOT, ROOT / "dist", int(shown.stdout))


if __name__ == "__main__":
    main()
