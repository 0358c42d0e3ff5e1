"""The released programs in our own code answer what the released programs answer.

`self_rag.jsonl` has what Self-RAG's own programs answered with scripted models. Where a checkout
is, `make audit-official` asks them again, in many more runs, and can write it anew.
"""

from collections import Counter
from typing import Any

import pytest

from crag.errors import SettingsError
from crag.papers.released import official_self_rag
from crag.papers.released.official import recordings
from crag.papers.released.reflection import released_ratio, released_settings
from crag.reflection_tokens import NO_RETRIEVAL, RETRIEVAL


def test_every_recorded_answer_is_ours() -> None:
    asked: Counter[str] = Counter()
    for case, seed, answer in recordings(official_self_rag.CASES, official_self_rag.RECORDED):
        text, cited = case.ours(seed)
        assert [text, cited] == answer, (case.name, seed)
        asked[case.name] += 1
    assert list(asked) == [case.name for case in official_self_rag.CASES]
    assert asked.total() == 596


@pytest.mark.parametrize(
    ("yes", "no", "expected"),
    [(0.9, 0.1, 0.043756), (0.5, 0.5, 0.5), (0.1, 0.9, 0.956244), (0.001, 0.0012, 0.506687)],
)
def test_the_released_ratio_is_inverted(yes: float, no: float, expected: float) -> None:
    assert released_ratio({RETRIEVAL: yes, NO_RETRIEVAL: no}) == pytest.approx(expected, abs=1e-6)
    assert released_ratio({}) == 0.5


@pytest.mark.parametrize("given", [{"compat": "released_text"}, {"max_depth": 0}])
def test_an_unknown_or_wrong_setting_is_refused(given: Any) -> None:
    with pytest.raises(SettingsError, match=next(iter(given))):
        released_settings(given)
