"""Write the graph of all-MiniLM-L6-v2 without its weights, as src/crag/models/minilm.onnx.

    pip install onnx && python papers/measurements/export_graph.py src/crag/models/minilm.onnx

The graph takes input_ids, attention_mask and token_type_ids of shape (batch, length), 64-bit whole
numbers, and returns the last hidden states of the tokens alone, (tokens, 384), those of one text
after the other. Its initializers carry names and shapes only, and the place that each has in one
file of them all, ordered by name; `crag.models.inference` fills them from the packaged encoder's
safetensors, so the graph takes thirty kilobytes and serves every model fine-tuned from it.

It is written here, and not exported from torch, for three reasons. Only attention sees padding: all
else is computed for tokens. Query, key and value are one product. And a session is prepared sooner.
"""

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
WIDTH, INNER, HEADS, LAYERS = 384, 1536, 12, 6
VOCABULARY, POSITIONS, TYPES = 30522, 512, 2
EPSILON = 1e-12
"""Of the layer normalisations."""
NEVER = float(np.finfo(np.float32).min)
"""What is added to the scores of padding."""


class Graph:
    """Nodes, constants and weights, as they are added; methods return the name of a value."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.weights: dict[str, tuple[int, ...]] = {}

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def whole(self, *values: int) -> str:
        """Add whole numbers, as a tensor of one dimension."""
        return self._constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """Add a number."""
        return self._constant(np.array(value, dtype=np.float32))

    def weight(self, name: str, *shape: int) -> str:
        """Name a weight of the encoder."""
        self.weights[name] = shape
        return name

    def _constant(self, values: np.ndarray[Any, Any]) -> str:
        name = f"constant_{'_'.join(map(str, values.ravel()))}"
        self.constants[name] = numpy_helper.from_array(values, name)
        return name

    def layer(self, states: str, name: str, inputs: int, outputs: int) -> str:
        """Apply a linear layer."""
        weight = self.weight(f"{name}.weight", outputs, inputs)
        return self.node("Gemm", states, weight, self.weight(f"{name}.bias", outputs), transB=1)

    def normalised(self, states: str, name: str) -> str:
        """Apply a layer normalisation."""
        scale, shift = (self.weight(f"{name}.{part}", WIDTH) for part in ("weight", "bias"))
        return self.node("LayerNormalization", states, scale, shift, axis=-1, epsilon=EPSILON)

    def gelu(self, states: str) -> str:
        """Apply the exact function; ONNX Runtime knows it by these nodes."""
        erf = self.node("Erf", self.node("Div", states, self.number(math.sqrt(2))))
        both = self.node("Mul", states, self.node("Add", erf, self.number(1)))
        return self.node("Mul", both, self.number(0.5))


def main() -> None:
    """Write the graph."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    arguments.output.write_bytes(written().SerializeToString(deterministic=True))
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")


def written() -> onnx.ModelProto:
    """Return the encoder with free batch and length."""
    graph = Graph()
    flat, shape = graph.whole(-1), graph.node("Shape", "input_ids")
    ids, mask, types = (graph.node("Reshape", name, flat) for name in INPUTS)
    # Where each token stands among padding, and which token stands at each place, padding any one.
    tokens = graph.node("Squeeze", graph.node("NonZero", mask), graph.whole(0))
    earlier = graph.node("CumSum", mask, graph.whole(0))
    number = graph.node("Max", graph.node("Sub", earlier, graph.whole(1)), graph.whole(0))
    places = graph.node("Reshape", number, shape)
    states = _embedded(graph, ids, types, tokens, shape)
    hidden = _hidden_padding(graph)
    for number_of_layer in range(LAYERS):
        name = f"encoder.layer.{number_of_layer}"
        seen = _attention(graph, states, f"{name}.attention.self", (tokens, places, hidden))
        seen = graph.layer(seen, f"{name}.attention.output.dense", WIDTH, WIDTH)
        added = graph.node("Add", seen, states)
        states = graph.normalised(added, f"{name}.attention.output.LayerNorm")
        inner = graph.gelu(graph.layer(states, f"{name}.intermediate.dense", WIDTH, INNER))
        inner = graph.layer(inner, f"{name}.output.dense", INNER, WIDTH)
        states = graph.normalised(graph.node("Add", inner, states), f"{name}.output.LayerNorm")
    graph.nodes.append(helper.make_node("Identity", [states], ["hidden"]))
    return _model(graph)


def _embedded(graph: Graph, ids: str, types: str, tokens: str, shape: str) -> str:
    """Return the sum of what is known of each token, its place and its side; without padding."""
    length = graph.node("Gather", shape, graph.whole(1))
    indices = {
        ("word", VOCABULARY): graph.node("Gather", ids, tokens),
        ("token_type", TYPES): graph.node("Gather", types, tokens),
        ("position", POSITIONS): graph.node("Mod", tokens, length),
    }
    words, sides, positions = (
        graph.node("Gather", graph.weight(f"embeddings.{name}_embeddings.weight", size, WIDTH), at)
        for (name, size), at in indices.items()
    )
    added = graph.node("Add", graph.node("Add", words, sides), positions)
    return graph.normalised(added, "embeddings.LayerNorm")


def _hidden_padding(graph: Graph) -> str:
    """Return what is added to the scores: 0 for tokens, (batch, 1, 1, length)."""
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = graph.node("Sub", graph.number(1), mask)
    return graph.node(
        "Unsqueeze", graph.node("Mul", padding, graph.number(NEVER)), graph.whole(1, 2)
    )


def _attention(graph: Graph, states: str, name: str, padding: tuple[str, str, str]) -> str:
    """Return what each token takes from the others of its text, (tokens, width)."""
    tokens, places, hidden = padding
    parts = ("query", "key", "value")
    weights = [graph.weight(f"{name}.{part}.weight", WIDTH, WIDTH) for part in parts]
    biases = [graph.weight(f"{name}.{part}.bias", WIDTH) for part in parts]
    weight, bias = (graph.node("Concat", *names, axis=0) for names in (weights, biases))
    joint = graph.node("Gemm", states, weight, bias, transB=1)
    split = [f"{part}_{len(graph.nodes)}" for part in parts]
    sizes = graph.whole(WIDTH, WIDTH, WIDTH)
    graph.nodes.append(helper.make_node("Split", [joint, sizes], split, axis=1))
    by_head = graph.whole(0, 0, HEADS, WIDTH // HEADS)
    orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    query, key, value = (
        graph.node(
            "Transpose",
            graph.node("Reshape", graph.node("Gather", part, places), by_head),
            perm=order,
        )
        for part, order in zip(split, orders, strict=True)
    )
    scale = graph.number(1 / math.sqrt(WIDTH // HEADS))
    scores = graph.node("Mul", graph.node("MatMul", query, key), scale)
    shares = graph.node("Softmax", graph.node("Add", scores, hidden), axis=-1)
    taken = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.node("Gather", graph.node("Reshape", taken, graph.whole(-1, WIDTH)), tokens)


def _model(graph: Graph) -> onnx.ModelProto:
    """Return the model; its weights have names, shapes and places in one file of them."""
    tensors = list(graph.constants.values())
    offset = 0
    for name, shape in sorted(graph.weights.items()):
        length = math.prod(shape) * np.dtype(np.float32).itemsize
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": "weights", "offset": str(offset), "length": str(length)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        tensors.append(tensor)
        offset += length
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in INPUTS
    ]
    output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["tokens", WIDTH])
    body = helper.make_graph(graph.nodes, "minilm", inputs, [output], tensors)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
