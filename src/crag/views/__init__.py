"""Pictures and tables for notebooks: runs, scores, thresholds and beams.

Nothing else in `crag` imports this package; pictures need matplotlib, from the extra `train`.
"""

from crag.views.beam import draw_beam
from crag.views.critiques import critique_table
from crag.views.graphs import draw_graph
from crag.views.scores import draw_scores
from crag.views.shown import Picture, Table
from crag.views.thresholds import draw_action_mix, draw_histogram, draw_precision_recall
from crag.views.walking import Step, Walk, walk

__all__ = [
    "Picture",
    "Step",
    "Table",
    "Walk",
    "critique_table",
    "draw_action_mix",
    "draw_beam",
    "draw_graph",
    "draw_histogram",
    "draw_precision_recall",
    "draw_scores",
    "walk",
]
