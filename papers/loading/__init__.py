"""Readers of the published files, one for each format, and what they share.

`detect` picks the reader, `files` reads lines, `alignment` checks that questions and knowledge
belong together.
"""
