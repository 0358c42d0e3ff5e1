"""Pictures and tables for notebooks: runs, scores and beams.

Of `crag`, only the papers import this package; pictures need matplotlib, from the extra `train`.
"""

from crag.papers.views.beam import draw_beam
from crag.papers.views.display import Picture, Table
from crag.papers.views.graphs import draw_graph
from crag.papers.views.runs import Step, Walk, walk
from crag.papers.views.scores import draw_scores
from crag.papers.views.updates import critique_table

__all__ = [
    "Picture", "Step", "Table", "Walk", "critique_table", "draw_beam", "draw_graph", "draw_scores",
    "walk",
]  # fmt: skip
