"""Self-RAG: a model that says by tokens whether to retrieve, and judges what it wrote."""
