"""What `.ci/run` does, with a `make` that only tells what it is asked for."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[1] / ".ci" / "run"
MAKE = """#!/bin/sh
echo "$*" >> "$TOLD"
pwd >> "$FOLDERS"
ls -A . .. | grep -v '^$' >> "$SEEN"
test "$1" != "$FAILS"
"""


class Checkout:
    """A repository with `.ci/run`, data beside it, and what make was told."""

    def __init__(self, place: Path) -> None:
        self._place, self._folder = place, place / "checkout"
        (self._folder / ".ci").mkdir(parents=True)
        shutil.copy(RUN, self._folder / ".ci" / "run")
        (place / "bin").mkdir()
        (place / "bin" / "make").write_text(MAKE)
        (place / "bin" / "make").chmod(0o755)
        (place / "copies").mkdir()
        self.data = place / "shared" / "data"
        self.data.mkdir(parents=True)
        for command in ("init", "add .", "-c user.name=a -c user.email=a@b.c commit -m a"):
            subprocess.run(["git", *command.split()], cwd=self._folder, check=True)
        (self._folder / "left").touch()  # Not in the commit.

    def run(self, *, fails: str = "") -> int:
        names = {name: str(self._place / name.lower()) for name in ("TOLD", "FOLDERS", "SEEN")}
        names |= {"FAILS": fails, "TMPDIR": str(self._place / "copies")}
        path = f"{self._place / 'bin'}:{os.environ['PATH']}"
        command = ["bash", self._folder / ".ci" / "run"]
        done = subprocess.run(command, env=os.environ | names | {"PATH": path}, check=False)
        assert not list((self._place / "copies").iterdir())  # The copy is removed in any case.
        return done.returncode

    def lines(self, name: str) -> list[str]:
        return (self._place / name).read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_copy_with_nothing_beside_it_does_what_readme_says(checkout: Checkout) -> None:
    assert checkout.run() == 0
    asked, *others = checkout.lines("told")
    assert asked.startswith("ask Q=What happens")
    *_, last = others
    assert others == ["check", "test", last]
    assert Path(last.removeprefix("test-data DATA=")).resolve() == checkout.data
    assert set(checkout.lines("seen")) == {".:", ".ci", "..:", "crag"}
    assert len(set(checkout.lines("folders"))) == 1


def test_without_the_data_their_tests_are_left_out(checkout: Checkout) -> None:
    checkout.data.rmdir()
    assert checkout.run() == 0
    assert checkout.lines("told")[-1] == "test"


@pytest.mark.parametrize("target", ["check", "test", "test-data"])
def test_what_fails_ends_it(checkout: Checkout, target: str) -> None:
    assert checkout.run(fails=target) != 0
    assert checkout.lines("told")[-1].split()[0] == target
