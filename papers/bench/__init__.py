"""The papers' experiments: tasks, metrics and intervals, and the runs that use them.

The guide, `docs/guide/benchmark-data.md`, says what the published numbers need.
"""
