"""The packaged reader: the data that it learns from, its training, and its ONNX file."""
