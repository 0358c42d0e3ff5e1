"""From a file to chunks: read it, split it, know where each line stands."""
