"""The runtime of nodes: LangGraph adapter, deadlines, failures of parts, environment variables."""
