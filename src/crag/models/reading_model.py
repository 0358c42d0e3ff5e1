"""A fine-tuned all-MiniLM-L6-v2 that reads: two outputs for a passage, three for each token.

Question and passage are one input, the passage with its title and headings before it. A long
passage is read in windows that overlap.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources.abc import Traversable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import EvaluatorError
from crag.models.lexical import FEATURES, bare_title, features
from crag.models.model import Input, Model, ModelFiles, Outputs
from crag.parts import Passage

PACKAGED = "crag_reader_l6_v2"
"""The folder of the packaged reader, beside this file."""
GRADE = "grade.safetensors"
"""The file with what blends the outputs and lexical features into one grade."""
SIGNALS = ("entity", "answer", "span", "evidence")
"""What the grade blends: the log-odds of the two outputs and of the best span against no answer,
and the mean log-odds of the best evidence; then the features of `crag.models.lexical`."""
MOST_WINDOWS = 16
"""Windows of one passage that are read, about 3,000 words; of a longer one those that share most
with the question, rare words before common ones."""
MOST_CHARACTERS = 200_000
"""Characters of one passage that are looked at."""
OVERLAP = 64
"""Tokens that a window shares with the one before it."""
SHORTEST_INPUT = 256
"""Tokens that leave room for a window beside the longest question and header."""
_QUESTION, _HEADER = 96, 64
"""Tokens of a question, and of title and headings, that are read."""
_LONGEST_SPAN = 40
"""Tokens of an answer span."""
_BEST_EVIDENCE = 12
"""Tokens whose evidence, the highest, takes part in the grade."""
_ENDS = (".", "?", "!", "…")
"""What ends a question as it is typed."""
_NEVER = -1e4
"""Log-odds of what cannot be, such as a span that ends before it begins."""
Floats = NDArray[np.float64]


class Window(NamedTuple):
    """One input of the model: question, title with headings, and a run of the text's tokens."""

    first: int
    """Index of its first token among those of the text."""
    ids: list[int]
    question: int
    """How many tokens the question takes, with the special ones around it."""
    header: int
    """How many title and headings take."""
    offsets: list[tuple[int, int]]
    """Where each token of the text stands in it."""
    lexical: list[float]
    """The features of `crag.models.lexical`."""

    @property
    def text(self) -> slice:
        """Where the tokens of the text are among `ids`."""
        return slice(self.question + self.header, len(self.ids) - 1)

    def as_input(self) -> Input:
        """Return it as the model reads it: two segments, the question and the rest."""
        return Input(self.ids, [int(place >= self.question) for place in range(len(self.ids))])


class View(NamedTuple):
    """The outputs of the model for one window."""

    window: Window
    signals: Floats
    """`SIGNALS`, then the lexical features."""
    evidence: Floats
    """Log-odds of each token of the text."""
    span: tuple[int, int, float]
    """First and last token of the best span, and its log-odds against no answer."""


class ReaderModel:
    """The model in `folder`, loaded on first use; thread-safe.

    `max_length` is that of one input in tokens, at least `SHORTEST_INPUT`; `hashes` are the SHA-256
    of its files.
    """

    def __init__(
        self, folder: Traversable, max_length: int, hashes: Mapping[str, str] | None = None
    ) -> None:
        def refused(problem: str) -> EvaluatorError:
            return EvaluatorError(f"evaluator {folder}: {problem}")

        self._files = ModelFiles(folder, hashes or {}, refused)
        self._model = Model(self._files)
        self._max_length = max_length

    def views(self, pairs: Sequence[tuple[str, Passage]]) -> list[list[View]]:
        """Return for each question and passage its windows in order; an empty text has none."""
        windows = [list(self._windows(question, passage)) for question, passage in pairs]
        outputs = iter(self._model.run([each.as_input() for group in windows for each in group]))
        return [[self._view(window, next(outputs)) for window in group] for group in windows]

    def grade(self, view: View) -> float:
        """Return the log-odds that a window serves the question."""
        blend, _ = self._blend
        return float(view.signals @ blend[:-1] + blend[-1])

    def _windows(self, question: str, passage: Passage) -> Iterator[Window]:
        if not passage.text.strip():
            return
        asked = self._model.encode(with_question_mark(question))
        titles = " > ".join(part for part in (passage.title, passage.section) if part.strip())
        header = self._model.encode(f"{titles} // " if titles else "")
        text = self._model.encode(passage.text[:MOST_CHARACTERS])
        first_token, *question_ids, last_token = asked.ids
        question_ids = question_ids[:_QUESTION]
        start = [first_token, *question_ids, last_token]
        titled = header.ids[1:-1][:_HEADER]
        ends = (end for _, end in header.offsets[1:-1][:_HEADER])
        title = titled[: sum(end <= len(bare_title(passage.title)) for end in ends)]
        ids, offsets = text.ids[1:-1], text.offsets[1:-1]
        room = self._max_length - len(start) - len(titled) - 1
        firsts: Sequence[int] = range(0, max(1, len(ids) - OVERLAP), room - OVERLAP)
        _, rarity = self._blend
        if len(firsts) > MOST_WINDOWS:
            shared = {
                first: rarity[list(set(question_ids).intersection(ids[first : first + room]))].sum()
                for first in firsts
            }
            firsts = sorted(sorted(firsts, key=lambda one: -shared[one])[:MOST_WINDOWS])
        for first in firsts:
            part = slice(first, first + room)
            row = [*start, *titled, *ids[part], last_token]
            lexical = features(_ids(question_ids), _ids(title), _ids(ids[part]), rarity)
            yield Window(first, row, len(start), len(titled), offsets[part], lexical)

    def _view(self, window: Window, outputs: Outputs) -> View:
        (output,), mark = (values.astype(np.float64) for values in outputs)
        inside = mark[window.text]
        span = _best_span(inside[:, 1], inside[:, 2], float(mark[0, 1] + mark[0, 2]))
        best = np.sort(inside[:, 0])[-_BEST_EVIDENCE:].mean() if len(inside) else _NEVER
        return View(window, np.r_[output, span[2], best, window.lexical], inside[:, 0], span)

    @cached_property
    def _blend(self) -> tuple[Floats, NDArray[np.float32]]:
        """The weights of the grade with its intercept, and the rarity of each token."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            stored = load(self._files.read(GRADE))
        except SafetensorError as error:
            raise self._files.refused(f"{GRADE} is damaged ({error}): copy it again") from error
        blend = stored["blend"].astype(np.float64)
        if len(blend) != len(SIGNALS) + len(FEATURES) + 1:
            raise self._files.refused(f"{GRADE} belongs to another version: train the reader again")
        return blend, stored["rarity"].astype(np.float32)


def _ids(tokens: Sequence[int]) -> NDArray[np.int64]:
    return np.array(tokens, dtype=np.int64)


def _best_span(first: Floats, last: Floats, none: float) -> tuple[int, int, float]:
    """Return the likeliest span, and by how much it is likelier than `none`."""
    if not len(first):
        return 0, 0, _NEVER
    ends = np.lib.stride_tricks.sliding_window_view(
        np.r_[last, np.full(_LONGEST_SPAN - 1, -np.inf)], _LONGEST_SPAN
    )
    sums = first[:, None] + ends
    start, more = divmod(int(np.argmax(sums)), _LONGEST_SPAN)
    return start, start + more, float(sums[start, more] - none)


def with_question_mark(question: str) -> str:
    """End a question that is typed without its mark.

    The questions of Natural Questions have none, and their passages mostly hold the answer, so that
    the packaged reader takes a missing mark for a sign of an answer.
    """
    typed = question.rstrip()
    return typed if typed.endswith(_ENDS) else f"{typed}?"
