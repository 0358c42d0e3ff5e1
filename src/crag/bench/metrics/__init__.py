"""Measures of benchmark rows, by name.

Some need a model: `citation_metrics` an entailment function, `factscore_metrics` a judge, `mauve`
GPT-2 or features. In `METRICS` they have no model and no values; `crag.bench.judges` loads the
models. `installed` checks whether the optional package of a metric is installed.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from crag.bench.metrics.citing import Entails, citation_metrics
from crag.bench.metrics.factscore import FactJudge, factscore_metrics
from crag.bench.metrics.judging import ACTION_ACCURACY, DOCUMENT_ACCURACY, EVALUATOR_ACCURACY
from crag.bench.metrics.knowledge import (
    ANSWER_FOUND,
    ANSWER_KEPT,
    KNOWLEDGE_RECALL,
    KNOWLEDGE_WORDS,
    RETRIEVED_RECALL,
    WORDS_KEPT,
)
from crag.bench.metrics.long_form import ROUGE_LSUM, STR_EM, mauve
from crag.bench.metrics.matching import MATCH, MATCH_ANSWERED, MATCH_NORMALISED
from crag.bench.metrics.metric import (
    Direction,
    Metric,
    MetricUnit,
    Pairs,
    Row,
    RowMetric,
    SetMetric,
)
from crag.bench.metrics.spending import (
    ABSTAINED,
    COST,
    EVALUATED_TEXTS,
    FAILED,
    INPUT_TOKENS,
    LLM_CALLS,
    OUTPUT_TOKENS,
    PAGES,
    SEARCHES,
    SECONDS,
)

_ALL: tuple[Metric, ...] = (
    MATCH,
    MATCH_NORMALISED,
    MATCH_ANSWERED,
    STR_EM,
    ROUGE_LSUM,
    mauve(),
    *citation_metrics(),
    *factscore_metrics(),
    EVALUATOR_ACCURACY,
    DOCUMENT_ACCURACY,
    ACTION_ACCURACY,
    RETRIEVED_RECALL,
    KNOWLEDGE_RECALL,
    ANSWER_KEPT,
    ANSWER_FOUND,
    KNOWLEDGE_WORDS,
    WORDS_KEPT,
    LLM_CALLS,
    EVALUATED_TEXTS,
    SEARCHES,
    PAGES,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    SECONDS,
    COST,
    ABSTAINED,
    FAILED,
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
