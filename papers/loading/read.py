"""Read the examples of a task from a file of rows, or from a folder of the CRAG repository."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

from crag.errors import DataError
from crag.papers.bench.examples import Loaded, Refused, TaskName
from crag.papers.evaluator.pairs import read_pairs
from crag.papers.loading import crag
from crag.papers.loading.files import ReadLog, collect, json_rows
from crag.papers.loading.rows import example_of

_WORD = re.compile(r"\w+")


def load_examples(path: Path, task: TaskName, *, as_published: bool = False) -> Loaded:
    """Read the examples of `task`; with `as_published` a folder to the letter: see `crag.read`.

    Rows that cannot be used are refused one by one.

    Raises:
        DataError: nothing can be read, or questions and knowledge do not belong together.
    """
    if path.is_dir():
        return crag.read(path, task, as_published=as_published)
    if as_published:
        raise DataError(path, "as-published reads a folder of the CRAG repository, not a file")
    log = ReadLog(path)
    return collect(
        log, json_rows(path, log), lambda row, number, log: example_of(row, task, number, log)
    )


def sample(loaded: Loaded, limit: int, seed: int) -> Loaded:
    """Keep `limit` examples drawn at random by `seed`, in the file's order, and note it."""
    total = len(loaded.examples)
    if limit >= total:
        return loaded
    chosen = sorted(random.Random(seed).sample(range(total), limit))  # noqa: S311 - no secret
    note = f"{limit} of {total} examples drawn with seed {seed}"
    return loaded._replace(
        examples=[loaded.examples[place] for place in chosen], notes=[*loaded.notes, note]
    )


def kept_apart(loaded: Loaded, trained_on: Sequence[Path]) -> Loaded:
    """Skip questions that occur in training files, or whose subject is relevant there.

    The paper trains its evaluator on the rows of PopQA outside the test set (CRAG, App. B), so both
    may ask about the same subject. Case and punctuation are ignored.

    Raises:
        DataError: an evaluator cannot be trained on one of the files.
    """
    pairs = [pair for path in trained_on for pair in read_pairs(path)]
    asked = {_plain(pair.question) for pair in pairs}
    titles = {_plain(pair.title) for pair in pairs if pair.positive and pair.title}
    kept, refused = [], list(loaded.refused)
    for one in loaded.examples:
        if _plain(one.question) in asked or titles & set(map(_plain, one.gold_titles)):
            reason = "the evaluator was trained on it or on its page"
            refused.append(Refused(f"question {one.id!r}", reason, one.id))
        else:
            kept.append(one)
    return Loaded(kept, refused, loaded.notes)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
