"""The papers' experiments: tasks, metrics and intervals, and the runs that use them.

The guide, `docs/guide/reproduce.md`, says what the published numbers need.
"""
