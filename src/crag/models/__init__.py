"""Packaged and local models: the encoder, weight differences, lexical features, the model card."""
