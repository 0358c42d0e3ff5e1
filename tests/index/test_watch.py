"""Following a folder: each change is indexed, and failures are survived."""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crag.errors import DocumentIndexError
from crag.index import DocumentIndex, IndexReport, watch_paths
from crag.index.watch import Outcome
from tests.commands import CRAG, variables

SECONDS = 60
"""How long a test waits at most for what takes two."""


@contextmanager
def followed(folder: Path, index: DocumentIndex) -> Iterator["queue.Queue[Outcome]"]:
    """Follow a folder in a thread, and yield the outcomes."""
    outcomes: queue.Queue[Outcome] = queue.Queue()
    stop = threading.Event()

    def follow() -> None:
        for outcome in watch_paths([folder], index, stop=stop):
            outcomes.put(outcome)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield outcomes
    finally:
        stop.set()
        thread.join(SECONDS)
    assert not thread.is_alive()


def report(outcomes: "queue.Queue[Outcome]") -> IndexReport:
    found, error = outcomes.get(timeout=SECONDS)
    assert found is not None, error
    return found


def counts(outcomes: "queue.Queue[Outcome]") -> tuple[int, int, int, int]:
    found = report(outcomes)
    return found.added, found.changed, found.unchanged, found.removed


def test_each_change_is_indexed(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.md").write_text("First.")
    with followed(folder, index) as outcomes:
        assert counts(outcomes) == (1, 0, 0, 0)
        (folder / "b.md").write_text("Second.")
        assert counts(outcomes) == (1, 0, 1, 0)
        (folder / "a.md").write_text("First, changed.")
        assert counts(outcomes) == (0, 1, 1, 0)
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "b.md").rename(folder / "deep" / "er" / "c.md")
        assert counts(outcomes) == (1, 0, 1, 1)
        shutil.rmtree(folder / "deep")
        assert counts(outcomes) == (0, 0, 1, 1)
        found = index.search("First", by="words")
        assert [chunk.page_content for chunk in found] == ["First, changed."]


def test_changes_that_come_together_are_one_run(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.md").write_text("First.")
    with followed(folder, index) as outcomes:
        report(outcomes)
        for number in range(50):
            (folder / f"{number}.md").write_text(f"Note {number}.")
        done = 0
        runs = 0
        while done < 50:
            done += report(outcomes).added
            runs += 1
        assert runs <= 3


def test_hidden_files_and_the_index_itself_are_no_changes(
    folder: Path, index: DocumentIndex
) -> None:
    (folder / "a.md").write_text("First.")
    inside = DocumentIndex(folder / "index", index.embeddings)
    with followed(folder, inside) as outcomes:
        report(outcomes)  # The run itself has written into the folder.
        (folder / ".git").mkdir()
        (folder / ".git" / "HEAD").write_text("ref")
        (folder / ".a.md.swp").write_text("First")
        with pytest.raises(queue.Empty):
            outcomes.get(timeout=4)
        (folder / "b.md").write_text("Second.")
        assert counts(outcomes) == (1, 0, 1, 0)
    inside.close()


def test_a_folder_that_is_replaced_is_followed_on(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.md").write_text("First.")
    with followed(folder, index) as outcomes:
        report(outcomes)
        shutil.rmtree(folder)
        failures = [outcomes.get(timeout=SECONDS).error]
        folder.mkdir()
        (folder / "b.md").write_text("Second.")
        while (outcome := outcomes.get(timeout=SECONDS)).error is not None:
            failures.append(outcome.error)
        assert all(isinstance(one, DocumentIndexError) for one in failures)
        assert outcome.report is not None
        assert (outcome.report.added, outcome.report.removed) == (1, 1)
        (folder / "c.md").write_text("Third.")
        assert counts(outcomes) == (1, 0, 1, 0)


def test_a_run_that_failed_is_tried_again(
    folder: Path, index: DocumentIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag.index.watch.RETRY", 2)
    (folder / "a.md").write_text("First.")
    with index.writing(), followed(folder, index) as outcomes:
        assert "another" in str(outcomes.get(timeout=SECONDS).error)
        assert "another" in str(outcomes.get(timeout=SECONDS).error)
    with followed(folder, index) as outcomes:
        assert counts(outcomes) == (1, 0, 0, 0)


def test_only_folders_are_followed(folder: Path, index: DocumentIndex) -> None:
    (folder / "a.md").write_text("First.")
    for path in (folder / "a.md", folder / "none"):
        with pytest.raises(DocumentIndexError, match="only folders are watched"):
            next(watch_paths([path], index))


def test_a_folder_that_stays_away_is_told_once(
    folder: Path, index: DocumentIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crag.index.watch.TICK", 50)
    (folder / "a.md").write_text("First.")
    stop = threading.Event()
    outcomes = watch_paths([folder], index, stop=stop)
    assert next(outcomes).error is None
    shutil.rmtree(folder)
    while "this folder is missing" not in str(next(outcomes).error):
        pass
    timer = threading.Timer(0.2, stop.set)
    timer.start()
    assert list(outcomes) == []
    assert stop.is_set()


def test_a_system_that_cannot_watch_is_told_with_a_way_out(
    folder: Path, index: DocumentIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(*_: Path, **__: object) -> Iterator[set[object]]:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr("watchfiles.watch", watch)
    told = "cannot watch it: OS file watch limit reached. WATCHFILES_FORCE_POLLING=true looks"
    with pytest.raises(DocumentIndexError, match=re.escape(told)):
        next(watch_paths([folder], index))


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_follows_until_it_is_interrupted(
    tmp_path: Path, ending: signal.Signals
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("The notice period is four weeks.")
    command = [CRAG, "index", folder, "--index", tmp_path / "index", "--watch", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables({})
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        timer = threading.Timer(4 * SECONDS, process.kill)
        timer.start()
        try:
            assert json.loads(process.stdout.readline())["added"] == 1
            (folder / "b.md").write_text("The office opens at nine.")
            assert json.loads(process.stdout.readline())["added"] == 1
            os.kill(process.pid, ending)
            assert process.wait(SECONDS) == 0
            assert process.stderr.read() == "Following changes; Ctrl-C ends.\n"
        finally:
            timer.cancel()
            process.kill()
