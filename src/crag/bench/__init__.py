"""The papers' experiments: tasks, metrics and intervals, and the runs that use them.

A composition root: it may import graphs and adapters, and only the command line imports it. The
guide, `docs/guide/benchmark-data.md`, says what the published numbers need.
"""
