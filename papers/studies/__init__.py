"""Measurements beside the papers' tables, each run as `python -m crag.papers.studies.NAME`."""
