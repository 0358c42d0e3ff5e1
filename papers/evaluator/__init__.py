"""Train and calibrate evaluators, and the critic and generator of Self-RAG."""
