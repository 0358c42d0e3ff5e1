"""Export the graph of all-MiniLM-L6-v2 without its weights, as src/crag/models/minilm.onnx.

    pip install onnx && python papers/measurements/export_graph.py src/crag/models/minilm.onnx

The graph takes input_ids, attention_mask and token_type_ids of shape (batch, length), 64-bit whole
numbers, and returns the last hidden states (batch, length, 384). Its initializers carry names and
shapes only, and the place that each has in one file of them all, ordered by name;
`crag.models.inference` fills them from the packaged encoder's safetensors, so the graph takes a
hundred kilobytes and serves every model fine-tuned from that encoder.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import torch
from transformers import BertModel

from crag.models.minilm import packaged_model

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class HiddenStates(torch.nn.Module):
    """The encoder with the inputs in the graph's order."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the last hidden states."""
        named = dict(zip(INPUTS, inputs, strict=True))
        return self.model(**named).last_hidden_state  # type: ignore[no-any-return]


def main() -> None:
    """Export, strip the weights, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        graph = exported(Path(folder) / "graph.onnx")
    strip(graph)
    arguments.output.write_bytes(graph.SerializeToString())
    print(f"{arguments.output}: {arguments.output.stat().st_size:,} bytes")


def exported(path: Path) -> onnx.ModelProto:
    """Export the packaged encoder with free batch and length."""
    model = BertModel.from_pretrained(
        str(packaged_model()), add_pooling_layer=False, attn_implementation="eager"
    )
    model.train(mode=False)
    example = torch.ones((2, 8), dtype=torch.int64)
    torch.onnx.export(
        HiddenStates(model),
        (example,) * len(INPUTS),
        path,
        input_names=list(INPUTS),
        output_names=["hidden"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in (*INPUTS, "hidden")},
        opset_version=17,
        do_constant_folding=False,  # Folding would rename the weights.
        dynamo=False,
    )
    return onnx.load(path)


def strip(graph: onnx.ModelProto) -> None:
    """Take the numbers out of the weights; leave names, shapes and places in one file of them."""
    weights = {t.name: t for t in graph.graph.initializer if t.name.startswith("model.")}
    offset = 0
    for name, tensor in sorted(weights.items()):
        tensor.name = name.removeprefix("model.")
        length = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        place = {"location": "weights", "offset": str(offset), "length": str(length)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        offset += length
        for node in graph.graph.node:
            for index, used in enumerate(node.input):
                if used == name:
                    node.input[index] = tensor.name


if __name__ == "__main__":
    main()
