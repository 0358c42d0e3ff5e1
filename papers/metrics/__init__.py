"""Measures of benchmark rows, by name.

Some need a model: `citation_metrics` an entailment function, `factscore_metrics` a judge, `mauve` a
language model. In `METRICS` they have no model and no values; `crag.papers.bench.resources` loads
the models.
"""

from collections.abc import Mapping

from crag.papers.metrics import long_form, matching, rows
from crag.papers.metrics.citing import citation_metrics
from crag.papers.metrics.factscore import factscore_metrics
from crag.papers.metrics.long_form import mauve
from crag.papers.metrics.metric import Metric, Pairs, Row

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        *matching.METRICS,
        *long_form.METRICS,
        *citation_metrics(),
        *factscore_metrics(),
        *rows.METRICS,
    )
}
"""In the order in which reports show them."""

__all__ = [
    "METRICS", "Metric", "Pairs", "Row", "citation_metrics", "factscore_metrics",
    "mauve",
]  # fmt: skip
