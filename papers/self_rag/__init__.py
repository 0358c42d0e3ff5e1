"""Training Self-RAG's critic and generator: their data, by rule or by a model, and the runs."""
