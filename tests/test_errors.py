"""Errors travel: a pool of processes sends them, and a program may copy them."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from crag.errors import (
    CragError,
    DataError,
    EmbeddingMismatchError,
    IndexNotFoundError,
    MissingPackageError,
    ModelError,
    QuestionError,
    SearchError,
    SettingsError,
)


def sent(error: CragError) -> CragError:
    return pickle.loads(pickle.dumps(error))  # type: ignore[no-any-return]  # noqa: S301 - our own


@pytest.mark.parametrize("travel", [sent, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        CragError("it failed"),
        QuestionError("question is empty"),
        SettingsError("k", 0, "it must be at least 1"),
        IndexNotFoundError("made"),
        EmbeddingMismatchError("made", "one", "another"),
        DataError(Path("rows.jsonl"), "it is no JSON", 3),
        SearchError("Library", "timeout", "no answer in time"),
        ModelError("m", "failed", "it is down"),
        MissingPackageError("ray", "crag batch --ray"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_travels_with_its_message_and_its_fields(
    error: CragError, travel: Callable[[CragError], CragError]
) -> None:
    arrived = travel(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)
