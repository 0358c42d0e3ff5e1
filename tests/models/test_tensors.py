"""Files of tensors."""

from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from crag.errors import EvaluatorError
from crag.models.tensors import read_tensors
from crag.papers.training.artefacts import write_tensors


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
