"""Errors travel: a pool of processes sends them, and a program may copy them."""

import copy
import pickle
from pathlib import Path

import pytest

from crag.errors import (
    CragError,
    DataError,
    EmbeddingMismatchError,
    IndexNotFoundError,
    MissingPackageError,
    SearchError,
    SettingsError,
)


@pytest.mark.parametrize(
    "error",
    [
        CragError("it failed"),
        SettingsError("k", 0, "it must be at least 1"),
        IndexNotFoundError("made"),
        EmbeddingMismatchError("made", "one", "another"),
        DataError(Path("rows.jsonl"), "it is no JSON", 3),
        SearchError("Library", "timeout", "no answer in time"),
        MissingPackageError("ray", "crag batch --ray"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_travels_with_its_message_and_its_fields(error: CragError) -> None:
    for arrived in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):  # noqa: S301 - our own
        assert type(arrived) is type(error)
        assert str(arrived) == str(error)
        assert vars(arrived) == vars(error)
