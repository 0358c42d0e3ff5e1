"""The parts of a graph from the environment; `crag index` needs `embeddings` alone."""
