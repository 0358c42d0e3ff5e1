"""Run the graph of all-MiniLM-L6-v2 with given weights: ONNX Runtime, or OpenVINO in bfloat16.

The graph (`minilm.onnx`, written by papers/measurements/export_graph.py) holds no weights, so that
it serves every model fine-tuned from that encoder. ONNX Runtime computes in float32 and is always
installed. OpenVINO, an extra, embeds 1.8 times and reads 1.5 times as many texts in a second of a
processor that computes in bfloat16 (`papers/README.md`), and changes scores by about 0.01.
"""

import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from crag.errors import SettingsError
from crag.extras import require
from crag.models.weights import Weights

Runtime = Literal["onnxruntime", "openvino"]
Feed = Mapping[str, NDArray[np.int64]]
"""The arrays input_ids, attention_mask and token_type_ids, each (batch, length)."""
Session = Callable[[Feed], NDArray[np.float32]]
"""Returns the last hidden states of all tokens, text after text, (tokens, 384); thread-safe."""
_GRAPH = "minilm.onnx"
_WEIGHTS = "weights"
"""The file that the graph expects its weights in."""
_HEADS = ("pooler.", "classifier.", "outputs.", "marks.")
"""Layers on top of the encoder, which the graph has no place for."""
_chosen: Runtime = "onnxruntime"


def use_runtime(name: str) -> None:
    """Choose what runs the models that this process loads from now on.

    Raises:
        SettingsError: there is no such runtime.
        MissingPackageError: OpenVINO is not installed.
    """
    global _chosen  # noqa: PLW0603 - like the number of threads, a choice for the whole process
    if name not in get_args(Runtime):
        raise SettingsError("CRAG_INFERENCE", name, f"allowed are {', '.join(get_args(Runtime))}")
    if name == "openvino":
        require("openvino", "CRAG_INFERENCE=openvino", "openvino")
    _chosen = name  # type: ignore[assignment]


def chosen_runtime() -> Runtime:
    """Return what runs the models that this process loads from now on."""
    return _chosen


def cores() -> int:
    """Return how many cores a model may use: OMP_NUM_THREADS, or as many as there are."""
    threads = os.environ.get("OMP_NUM_THREADS", "")  # torch and numpy read it by themselves.
    return int(threads) if threads.isdecimal() and int(threads) else os.cpu_count() or 1


def open_session(weights: Weights) -> Session:
    """Prepare the graph with `weights`, which are named as the packaged ones.

    A call takes one core, and several at a time take several: threads that share a batch wait for
    each other after every layer, which takes a tenth of the processor time of a lone question, and
    on a busy machine many times as long as the batch.
    """
    used = {name: weights[name] for name in weights if not name.startswith(_HEADS)}
    return _OpenVino(used) if _chosen == "openvino" else _OnnxRuntime(used)


class _OnnxRuntime:
    def __init__(self, weights: Weights) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        options: Any = onnxruntime.SessionOptions()  # type: ignore[attr-defined, unused-ignore]
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
        self._read_in_place = (weights, values)
        self._session = onnxruntime.InferenceSession(
            _graph().read_bytes(), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, feed: Feed) -> NDArray[np.float32]:
        states: Any = self._session.run(None, dict(feed))[0]
        return states  # type: ignore[no-any-return, unused-ignore]


class _OpenVino:
    def __init__(self, weights: Weights) -> None:
        import openvino  # type: ignore[import-untyped, unused-ignore]

        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": False})  # The files are gone when it computes.
        computes = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if "BF16" in computes else "f32",
            "INFERENCE_NUM_THREADS": cores(),
            "NUM_STREAMS": cores(),
        }
        with TemporaryDirectory() as folder:
            graph = Path(folder, _GRAPH)
            graph.write_bytes(_graph().read_bytes())
            with Path(folder, _WEIGHTS).open("wb") as file:
                file.writelines(weights[name].tobytes() for name in sorted(weights))
            self._model = core.compile_model(core.read_model(graph), "CPU", options)

    def __call__(self, feed: Feed) -> NDArray[np.float32]:
        # One request for each call: those of one model run side by side.
        results = self._model.create_infer_request().infer(dict(feed))
        states: NDArray[np.float32] = results[0]
        return states


def _graph() -> Traversable:
    return files("crag.models").joinpath(_GRAPH)
