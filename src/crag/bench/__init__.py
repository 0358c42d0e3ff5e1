"""The papers' experiments: tasks, metrics and intervals, and the runs that use them.

A composition root: it may import graphs and adapters, and nothing of `crag` but the command line
imports it. What the published numbers need and cannot be had here is told in the guide,
`docs/guide/benchmark-data.md`.
"""
