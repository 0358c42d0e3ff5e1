"""Corrective RAG: retrieval that is graded, and repaired before the model answers.

Start with `crag.graph.build_crag`; what a graph is built from stands in `crag.parts`, what can be
changed for each run in `crag.settings`. Importing this package loads no model library.
"""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())

__version__ = "0.1.0"
