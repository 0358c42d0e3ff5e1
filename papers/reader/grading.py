"""Fit the grade of a reader: one probability from its outputs and from lexical features."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crag.errors import TrainingError
from crag.models.reading_model import ReaderModel
from crag.papers.reader.reading_rows import ReadingRow
from crag.parts import Passage

RIGHT_THING = 0.25
"""What a passage about the right thing that does not hold the answer is worth."""
_LEAST = 1e-6
_UNSAID = 0.8
"""What one about the right thing is worth where nothing says whether it holds the answer."""


def grade_of(row: ReadingRow) -> float | None:
    """Return what a passage is worth, from 0 to 1; None where the row does not say enough."""
    match row.entity, row.answer:
        case (_, 1):
            return 1.0
        case (0, _):
            return 0.0
        case (1, 0):
            return RIGHT_THING
        case (None, 0):
            return 0.0
        case (1, None):
            return _UNSAID
        case _:
            return None


def fit_grade(reader: ReaderModel, rows: Sequence[ReadingRow]) -> NDArray[np.float64]:
    """Return the weights of signals and features, and the intercept, fitted by logistic regression.

    `rows` should not have been trained on: on those its outputs are too good for a fit.

    Raises:
        TrainingError: all rows are worth the same.
    """
    from sklearn.linear_model import LogisticRegression

    graded = [(row, grade) for row in rows if (grade := grade_of(row)) is not None]
    worth = np.array([grade for _, grade in graded])
    if len(graded) == 0 or worth.min() == worth.max():
        message = "a grade is fitted to rows of different worth; these are all alike"
        raise TrainingError(message)
    signals = np.array([_signals(reader, row) for row, _ in graded])
    middle, spread = signals.mean(0), signals.std(0) + _LEAST
    even = (signals - middle) / spread
    model = LogisticRegression(C=1.0, max_iter=5000).fit(
        np.r_[even, even],
        np.r_[np.ones(len(worth)), np.zeros(len(worth))],
        np.r_[worth, 1 - worth],
    )
    weights = model.coef_[0] / spread
    return np.asarray([*weights, model.intercept_[0] - weights @ middle], dtype=np.float64)


def _signals(reader: ReaderModel, row: ReadingRow) -> NDArray[np.float64]:
    """Return the signals of the window that answers best, as a grade sees them."""
    (views,) = reader.views([(row.question, Passage(row.title, row.text))])
    return max((view.signals for view in views), key=lambda signals: float(signals[1]))
