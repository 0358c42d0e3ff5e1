"""Packaged and local models: encoder, weight deltas, lexical features, model card."""
