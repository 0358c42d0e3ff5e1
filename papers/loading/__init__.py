"""Readers of the published files: `detect` picks the format, `rows` reads JSON, `crag` folders."""
