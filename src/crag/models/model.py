"""Run a model in a standard ONNX file: one input a run, without padding, on one core.

Nothing shares a run, so a result cannot depend on what else is computed, and an 8-bit model gains
nothing from batches. All callers of a process share its cores: a lone one with many inputs uses
them all, and of many at a time each gets its turn after every input.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import CragError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
Outputs = Sequence[NDArray[np.float32]]
"""What a model returns for one input, in the order of its graph."""


class Input(NamedTuple):
    """The tokens of one input with the special ones, and which of its two texts each is of."""

    ids: Sequence[int]
    type_ids: Sequence[int]


class ModelFiles(NamedTuple):
    """The files of one model."""

    folder: Traversable
    """May lie in a zipped package."""
    hashes: Mapping[str, str]
    """The SHA-256 of each file that is checked, as the model's card tells them."""
    refused: Callable[[str], CragError]
    """Makes the error for a file that is missing or damaged."""

    def read(self, name: str) -> bytes:
        """Return what a file holds, or raise the error that says what is wrong with it."""
        problem = "it is not the file that the card names by its SHA-256"
        try:
            content = self.folder.joinpath(name).read_bytes()
            if self.hashes.get(name) in {None, hashlib.sha256(content).hexdigest()}:
                return content
        except OSError as error:
            problem = f"it cannot be read ({error})"
        raise self.refused(f"{name}: {problem}. Copy the folder again, or install crag again")


class Model:
    """A graph with its tokenizer, loaded on first use; thread-safe, also in forked processes.

    The graph takes ``input_ids`` and ``token_type_ids`` of one input, each (length,).
    """

    def __init__(
        self, files: ModelFiles, max_length: int | None = None, *, whole_range: bool = False
    ) -> None:
        """`whole_range` says that weights have all 8 bits, where others keep to 7."""
        self._files = files
        self._max_length = max_length
        self._whole_range = whole_range
        self._sessions: dict[int, Any] = {}
        """By process: a forked one may have inherited locks that a run held."""

    def encode(self, text: str) -> "Encoding":
        """Return the tokens of a text with the special ones, cut at `max_length` if there is one.

        A character that is no Unicode (half of a surrogate pair) counts as a question mark.
        """
        return self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"))

    def run(self, inputs: Sequence[Input]) -> list[Outputs]:
        """Return the outputs for each input, in order."""
        if not inputs:
            return []
        process = os.getpid()
        cores = _cores_of(process)
        with cores.loading:
            session = self._sessions[process] = self._sessions.get(process) or self._load()
        outputs: list[Outputs] = [()] * len(inputs)
        waiting = iter(range(len(inputs)))

        def compute() -> None:
            for index in waiting:
                ids, type_ids = (np.asarray(part, dtype=np.int64) for part in inputs[index])
                with cores.turns:
                    feed = {"input_ids": ids, "token_type_ids": type_ids}
                    outputs[index] = session.run(None, feed)

        helpers = [cores.helpers.submit(compute) for _ in range(min(cores.count, len(inputs)) - 1)]
        try:
            compute()
        finally:
            for _ in waiting:  # After an error or an interrupt nothing more is begun.
                pass
            for helper in helpers:
                if not helper.cancel():
                    helper.result()
        return outputs

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_buffer(self._files.read(TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if self._max_length is not None:
            tokenizer.enable_truncation(self._max_length)
        return tokenizer

    def _load(self) -> Any:
        import onnxruntime  # type: ignore[import-untyped]

        options: Any = onnxruntime.SessionOptions()  # type: ignore[attr-defined, unused-ignore]
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        if self._whole_range and not _has_vnni():
            options.add_session_config_entry("session.x64quantprecision", "1")
        content = self._files.read(MODEL)
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _has_vnni() -> bool:
    """Return whether products of 8 bits are added in 32 bits here, as far as Linux tells.

    Other processors of x64 cut off sums of 16 bits, unless the runtime is told to be exact, which
    takes 1.7 times as long.
    """
    with suppress(OSError):
        return "avx512_vnni" in Path("/proc/cpuinfo").read_text("ascii", "replace")
    return False


def available_cores() -> int:
    """Return how many cores models may use: OMP_NUM_THREADS, or as many as this process has."""
    threads = os.environ.get("OMP_NUM_THREADS", "")  # torch and numpy read it by themselves.
    if threads.isdecimal() and int(threads):
        return int(threads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Cores:
    """What the callers of a process share: a turn for each core, and threads that help."""

    def __init__(self) -> None:
        self.count = available_cores()
        self.turns = threading.BoundedSemaphore(self.count)
        self.helpers = ThreadPoolExecutor(max(1, self.count - 1), "model")
        self.loading = threading.Lock()


@cache
def _cores_of(process: int) -> _Cores:
    del process  # Another process, such as one that was forked, has other threads and locks.
    return _Cores()
