"""Write a fine-tuned BERT as the product runs it: a standard ONNX file with 8-bit weights.

The graph takes one input without padding, so it needs no mask. The weights of its layers are
quantised row by row (`onnxruntime.quantization`), what flows between them when it runs; the words
are 8-bit numbers with a scale each, and all else stays in 32 bits.

A processor without VNNI adds two products of signed weights in 16 bits and cuts off what does not
fit, so that results would differ from one processor to another. The weights have 7 bits, which
always fit.
"""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crag.models.model import MODEL
from crag.papers.files import replacing

Weights = dict[str, NDArray[np.float32]]
"""The weights of a BERT by the names of transformers, with those of heads on top of it."""
Values = dict[str, NDArray[Any]]
HEADS = "heads"
"""Under this name the file says how many attention heads there are."""
_OPSET, _VERSION = 21, 10
_EPSILON = 1e-12
"""Of the layer normalisations."""
_PARTS = ("query", "key", "value")
_OTHERS = ("token_type", "position")
_WORDS = "embeddings.word_embeddings.weight"


class _Graph:
    """Nodes and the values they start from, as they are added; methods return a value's name."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.values: Values = {}

    def node(self, kind: str, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> str:
        from onnx import helper

        outputs = outputs or [f"{kind}_{len(self.nodes)}"]
        name = attributes.pop("name", f"{kind}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def value(self, name: str, values: Any) -> str:
        self.values[name] = np.ascontiguousarray(values)
        return name

    def whole(self, *numbers: int) -> str:
        return self.value(f"whole_{'_'.join(map(str, numbers))}", np.array(numbers, np.int64))

    def layer(self, states: str, name: str, *parts: str) -> str:
        """Apply a linear layer, or several in one product."""
        names = [f"{name}.{part}" for part in parts] or [name]
        weight = np.concatenate([self.weights[f"{one}.weight"] for one in names])
        bias = np.concatenate([self.weights[f"{one}.bias"] for one in names])
        product = self.node("MatMul", states, self.value(f"{name}.weight", weight.T), name=name)
        return self.node("Add", product, self.value(f"{name}.bias", bias))

    def normalised(self, states: str, name: str) -> str:
        weight, bias = (f"{name}.{part}" for part in ("weight", "bias"))
        parts = [self.value(one, self.weights[one]) for one in (weight, bias)]
        return self.node("LayerNormalization", states, *parts, epsilon=_EPSILON)

    def embedded(self) -> str:
        from onnx import TensorProto

        words = self.weights[_WORDS]
        scale = np.abs(words).max(axis=1, keepdims=True) / np.iinfo(np.int8).max
        scale[scale == 0] = 1.0
        small = self.value(_WORDS, np.rint(words / scale).astype(np.int8))
        scales = self.value(f"{_WORDS}.scale", scale.astype(np.float32))
        read = self.node("Cast", self.node("Gather", small, "input_ids"), to=TensorProto.FLOAT)
        read = self.node("Mul", read, self.node("Gather", scales, "input_ids"))
        sides, places = (f"embeddings.{kind}_embeddings.weight" for kind in _OTHERS)
        side = self.node("Gather", self.value(sides, self.weights[sides]), "token_type_ids")
        table, length = self.value(places, self.weights[places]), self.node("Shape", "input_ids")
        place = self.node("Slice", table, self.whole(0), length)
        read = self.node("Add", self.node("Add", read, side), place)
        return self.normalised(read, "embeddings.LayerNorm")

    def attention(self, states: str, name: str, heads: int) -> str:
        width = self.weights[f"{name}.query.weight"].shape[0]
        joint = self.layer(states, name, *_PARTS)
        joint = self.node("Reshape", joint, self.whole(-1, len(_PARTS), heads, width // heads))
        joint = self.node("Transpose", joint, perm=[1, 2, 0, 3])
        split = [f"{name}.{part}" for part in _PARTS]
        self.node("Split", joint, outputs=split, axis=0, num_outputs=len(_PARTS))
        query, key, value = (self.node("Squeeze", part, self.whole(0)) for part in split)
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 2, 1]))
        scale = self.value("scale", np.array(1 / math.sqrt(width // heads), np.float32))
        shares = self.node("Softmax", self.node("Mul", scores, scale), axis=-1)
        taken = self.node("Transpose", self.node("MatMul", shares, value), perm=[1, 0, 2])
        return self.node("Reshape", taken, self.whole(-1, width))

    def states(self, heads: int) -> str:
        states = self.embedded()
        for number in range(layers_of(self.weights)):
            name = f"encoder.layer.{number}"
            seen = self.attention(states, f"{name}.attention.self", heads)
            seen = self.layer(seen, f"{name}.attention.output.dense")
            added = self.node("Add", seen, states)
            states = self.normalised(added, f"{name}.attention.output.LayerNorm")
            inner = self.node("Gelu", self.layer(states, f"{name}.intermediate.dense"))
            inner = self.layer(inner, f"{name}.output.dense")
            states = self.normalised(self.node("Add", inner, states), f"{name}.output.LayerNorm")
        return states

    def written(self, outputs: dict[str, Sequence[int | str]], heads: int) -> Any:
        from onnx import TensorProto, helper, numpy_helper

        body = helper.make_graph(
            self.nodes,
            "bert",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["length"])
                for name in ("input_ids", "token_type_ids")
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                for name, shape in outputs.items()
            ],
            [numpy_helper.from_array(values, name) for name, values in self.values.items()],
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(body, opset_imports=[opset], ir_version=_VERSION)
        helper.set_model_props(model, {HEADS: str(heads)})
        return model


def write_reader(weights: Weights, heads: int, folder: Path) -> None:
    """Write a reader: ``outputs`` (1, 2) for the passage, ``marks`` (length, 3) for its tokens."""
    graph = _Graph(weights)
    states = graph.states(heads)
    first = graph.node("Slice", states, graph.whole(0), graph.whole(1))
    pooled = graph.node("Tanh", graph.layer(first, "pooler.dense"))
    graph.node("Identity", graph.layer(pooled, "outputs"), outputs=["outputs"])
    graph.node("Identity", graph.layer(states, "marks"), outputs=["marks"])
    shapes: dict[str, Sequence[int | str]] = {"outputs": [1, 2], "marks": ["length", 3]}
    _quantise(graph.written(shapes, heads), ["pooler.dense", "outputs", "marks"], folder)


def layers_of(weights: Weights) -> int:
    """Return how many layers there are."""
    return sum(name.endswith("attention.output.dense.bias") for name in weights)


def _quantise(model: Any, whole: Sequence[str], folder: Path) -> None:
    """Write a model with 8-bit weights, but for those layers that are to stay `whole`."""
    import onnx
    from onnxruntime.quantization import (  # type: ignore[import-untyped]
        QuantType,
        quantize_dynamic,
    )

    with replacing(folder / MODEL) as written, tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch, MODEL)
        onnx.save(model, before)
        quantize_dynamic(
            before, written, op_types_to_quantize=["MatMul"], per_channel=True,
            weight_type=QuantType.QInt8, reduce_range=True, nodes_to_exclude=list(whole),
            extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip


def read_weights(folder: Path) -> tuple[Weights, int]:
    """Return the weights of a file that was written here, but for rounding, and its heads."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(folder / MODEL)
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    weights: Weights = {_WORDS: stored.pop(_WORDS) * stored.pop(f"{_WORDS}.scale")}
    for key, values in stored.items():
        name = key.removesuffix("_quantized")
        if key != name:
            shifted = values.astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
            weights[name] = (shifted * stored[f"{name}_scale"]).T
        elif name.endswith((".weight", ".bias")):
            is_layer = values.ndim > 1 and "embeddings" not in name
            weights[name] = values.T if is_layer else values
    for name in [name for name in weights if ".attention.self." in name]:
        start, _, kind = name.rpartition(".")
        parts = np.split(weights.pop(name), len(_PARTS))
        weights.update({f"{start}.{part}.{kind}": v for part, v in zip(_PARTS, parts, strict=True)})
    (heads,) = (int(one.value) for one in model.metadata_props if one.key == HEADS)
    return {name: np.ascontiguousarray(values) for name, values in weights.items()}, heads
