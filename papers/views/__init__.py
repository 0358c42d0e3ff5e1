"""What the notebooks show: runs step by step, scores against thresholds, tables.

Pictures need matplotlib, from the extra `train`.
"""

from crag.papers.views.display import Picture, Table
from crag.papers.views.runs import Walk, critique_table, walk
from crag.papers.views.scores import draw_scores

__all__ = ["Picture", "Table", "Walk", "critique_table", "draw_scores", "walk"]
