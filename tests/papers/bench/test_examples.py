import json
from pathlib import Path

import pytest

from crag.errors import SettingsError
from crag.papers.loading.detect import load_examples, sample


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    path = tmp_path / "qa.jsonl"
    rows = [{"id": str(n), "question": f"q{n}?", "answers": [str(n)]} for n in range(100)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_a_limit_draws_the_same_examples_in_the_order_of_the_file(hundred: Path) -> None:
    loaded = load_examples(hundred, "qa")
    drawn = sample(loaded, 10, 3)
    ids = [int(example.id) for example in drawn.examples]
    assert len(ids) == 10
    assert ids == sorted(ids)
    assert drawn == sample(loaded, 10, 3)
    assert "10 of 100 examples drawn with seed 3" in drawn.notes
    other = sample(loaded, 10, 4)
    assert [example.id for example in other.examples] != list(map(str, ids))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": "poetry"}, "setting 'task' cannot be 'poetry': choose one of popqa"),
        ({"format": "xml"}, "setting 'format' cannot be 'xml': choose one of auto"),
    ],
)
def test_wrong_settings_are_refused(hundred: Path, options: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_examples(hundred, **{"task": "qa", **options})  # type: ignore[arg-type]
