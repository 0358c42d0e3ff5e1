"""The packaged reader and encoder: the data that they learn from, and their training."""
