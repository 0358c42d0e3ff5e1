"""Read the examples of a task from a published file, or a folder of the CRAG repository."""

import random
from pathlib import Path

from crag.papers.bench.examples import Loaded, TaskName
from crag.papers.loading import crag
from crag.papers.loading.rows import read_rows


def load_examples(path: Path, task: TaskName) -> Loaded:
    """Read the examples of `task`.

    Rows that cannot be used are refused one by one.

    Raises:
        DataError: nothing can be read, or questions and knowledge do not belong together.
    """
    if path.is_dir():
        return crag.read(path, task)
    return read_rows(path, task)


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
