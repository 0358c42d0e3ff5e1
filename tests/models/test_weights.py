"""Weights of models: files, and a fine-tuned model as its difference from the base."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from safetensors import SafetensorError

from crag.errors import EvaluatorError
from crag.models.weights import read_tensors, restored
from crag.papers.training.artefacts import difference, write_tensors

Floats = NDArray[np.float32]
ROWS, COLUMNS = 65, 64  # More numbers than are kept whole.
changes = st.builds(
    lambda seed, size: np.random.default_rng(seed).normal(0, size, (ROWS, COLUMNS)),
    st.integers(0, 99),
    st.sampled_from([0.0, 1e-42, 1e-8, 1e-3, 1.0, 1e4]),
).map(lambda change: change.astype(np.float32))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    tensors = {
        "bytes": np.array([[-128, 127]], np.int8),
        "turned": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "every other": np.arange(6, dtype=np.float16)[::2],
    }
    write_tensors(tmp_path / "t", tensors)
    read = read_tensors(tmp_path / "t")
    assert set(read) == set(tensors)
    assert all(np.array_equal(read[name], tensors[name]) for name in tensors)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o644


def test_a_file_is_replaced(tmp_path: Path) -> None:
    for value in (1.0, 2.0):
        write_tensors(tmp_path / "t", {"a": np.array([value])})
    assert read_tensors(tmp_path / "t")["a"].tolist() == [2.0]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path) -> None:
    write_tensors(tmp_path / "t", {"a": np.ones(1)})
    with pytest.raises(SafetensorError):
        write_tensors(tmp_path / "t", {"a": np.array(["text"])})
    assert read_tensors(tmp_path / "t")["a"].tolist() == [1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_truncated_empty_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_tensors(path, {"a": np.ones(100)})
    content = path.read_bytes()
    for part in (content[:-8], content[:20], b""):
        path.write_bytes(part)
        with pytest.raises(EvaluatorError, match=r"/t cannot be read.*copy the file again"):
            read_tensors(path)
    with pytest.raises(EvaluatorError, match="No such file"):
        read_tensors(tmp_path / "none")


@given(changes, st.integers(0, 9))
@settings(deadline=None)
def test_a_matrix_comes_back_within_half_a_step(change: Floats, seed: int) -> None:
    base = np.random.default_rng(seed).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    tuned = base + change
    stored = difference({"m": base}, {"m": tuned})
    back = restored({"m": base}, stored)["m"]
    real = tuned.astype(np.float64) - base
    half = np.abs(real).max(axis=1, keepdims=True) / 127 / 2
    rounding = np.spacing(np.maximum(np.abs(tuned), np.abs(base))) * 2
    assert back.dtype == np.float32
    assert (np.abs(back - tuned.astype(np.float64)) <= half * 1.001 + rounding).all()


@given(
    arrays(np.float32, array_shapes(max_dims=3, max_side=9), elements=st.floats(-9, 9, width=32))
)
@settings(deadline=None)
def test_small_tensors_vectors_and_new_ones_come_back_exactly(values: Floats) -> None:
    for base in ({}, {"t": np.zeros_like(values)}):
        stored = difference(base, {"t": values})
        assert np.array_equal(restored(base, stored)["t"], values)


def test_equal_tensors_are_not_stored() -> None:
    base = {"a": np.ones((ROWS, COLUMNS), np.float32), "b": np.ones(3, np.float32)}
    assert difference(base, {name: values.copy() for name, values in base.items()}) == {}
    assert restored(base, {}) == base


def test_a_matrix_is_stored_in_8_bits_with_a_scale_for_each_row() -> None:
    base = np.zeros((ROWS, COLUMNS), np.float32)
    tuned = base.copy()
    tuned[0, :2] = [1.27, -0.6]
    stored = difference({"m": base}, {"m": tuned})
    assert set(stored) == {"m.change", "m.scale"}
    assert stored["m.change"].dtype == np.int8
    assert stored["m.change"][0, :3].tolist() == [127, -60, 0]
    assert stored["m.scale"][:, 0].tolist() == pytest.approx([0.01, *[1.0] * (ROWS - 1)])


def test_the_base_is_left_as_it_is() -> None:
    base = {"m": np.zeros((ROWS, COLUMNS), np.float32), "kept": np.ones(2, np.float32)}
    weights = restored(base, difference(base, {"m": base["m"] + 1, "new": np.ones(1, np.float32)}))
    assert set(weights) == {"m", "kept", "new"}
    assert not base["m"].any()
    assert set(base) == {"m", "kept"}


def test_changes_too_small_for_a_scale_do_not_overflow() -> None:
    base = np.zeros((ROWS, COLUMNS), np.float32)
    tuned = np.full_like(base, 2.5e-43)
    assert (restored({"m": base}, difference({"m": base}, {"m": tuned}))["m"] >= 0).all()
