"""Measures of benchmark rows, by name.

Some need a model: `citation_metrics` an entailment function, `factscore_metrics` a judge, `mauve`
GPT-2 or features. In `METRICS` they have no model and no values; `experiments.judges` loads the
models. `installed` checks whether the optional package of a metric is installed.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from crag.papers.metrics import judging, knowledge, long_form, matching, spending
from crag.papers.metrics.citing import UNSUPPORTED, Entails, citation_metrics
from crag.papers.metrics.factscore import FactJudge, factscore_metrics
from crag.papers.metrics.long_form import mauve
from crag.papers.metrics.metric import (
    Direction,
    Metric,
    MetricUnit,
    Pairs,
    Row,
    RowMetric,
    SetMetric,
)

_ALL: tuple[Metric, ...] = (
    *matching.METRICS,
    *long_form.METRICS,
    *citation_metrics(),
    UNSUPPORTED,
    *factscore_metrics(),
    *judging.METRICS,
    *knowledge.METRICS,
    *spending.METRICS,
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
"""In the order in which reports show them."""
_MODULES = {"rouge-score": "rouge_score", "mauve-text": "mauve"}

__all__ = [
    "METRICS",
    "Direction",
    "Entails",
    "FactJudge",
    "Metric",
    "MetricUnit",
    "Pairs",
    "Row",
    "RowMetric",
    "SetMetric",
    "citation_metrics",
    "factscore_metrics",
    "installed",
    "mauve",
]


def installed(metric: Metric) -> bool:
    """Return whether the optional package of a metric is installed, or it needs none."""
    return not metric.package or find_spec(_MODULES[metric.package]) is not None
