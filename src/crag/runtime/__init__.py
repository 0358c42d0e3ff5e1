"""What runs nodes: the adapter to LangGraph, deadlines, failures of foreign parts, variables."""
