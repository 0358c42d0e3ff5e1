"""What runs the packaged models."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from crag.errors import MissingPackageError, SettingsError
from crag.evaluators import load_evaluator
from crag.models.encoder import SentenceEncoder
from crag.models.inference import use_runtime

TEXTS = [
    "Descale the kettle every month with vinegar.",
    "The Eiffel Tower was completed in 1889. " * 12,
    "A kettle.",
]
QUESTION = "How often should a kettle be descaled?"


@pytest.fixture(autouse=True)
def own_choice() -> Iterator[None]:
    yield
    use_runtime("onnxruntime")


def test_openvino_agrees_with_onnx_runtime() -> None:
    expected = np.array(SentenceEncoder().embed_documents(TEXTS))
    use_runtime("openvino")
    found = np.array(SentenceEncoder().embed_documents(TEXTS))
    assert not np.array_equal(found, expected)
    assert (found * expected).sum(1) == pytest.approx([1, 1, 1], abs=1e-3)


def test_scores_change_little_and_keep_their_order() -> None:
    expected = load_evaluator("reader").score(QUESTION, TEXTS)
    use_runtime("openvino")
    found = load_evaluator("reader").score(QUESTION, TEXTS)
    assert found == pytest.approx(expected, abs=0.03)
    assert np.argsort(found).tolist() == np.argsort(expected).tolist()


def test_threads_share_one_model() -> None:
    use_runtime("openvino")
    evaluator = load_evaluator("cross-encoder")
    alone = [evaluator.score(QUESTION, [text])[0] for text in TEXTS]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: evaluator.score(QUESTION, [text])[0], TEXTS * 6))
    assert found == pytest.approx(alone * 6)


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"CRAG_INFERENCE.*'torch'.*onnxruntime, openvino"):
        use_runtime("torch")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crag.extras._is_installed", lambda _: False)
    with pytest.raises(MissingPackageError, match=r"'\.\[openvino\]'"):
        use_runtime("openvino")
