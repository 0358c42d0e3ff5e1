"""A fine-tuned all-MiniLM-L6-v2 that reads: two outputs for a passage, three for each token.

Question and passage are one input, the passage with its title and headings before it. A long
passage is read in windows that overlap. ONNX Runtime runs the encoder (`crag.models.minilm`); the
heads are small enough for numpy.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import EvaluatorError
from crag.models.lexical import FEATURES, bare_title, features
from crag.models.minilm import MiniLM, States, official_weights
from crag.models.weights import DELTA, layer, pooled, read_tensors, restored
from crag.parts import Passage

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
_UNCUT = 1_000_000
"""Tokens at which the tokenizer would cut; windows are made here instead."""
_CLS, _SEP = 101, 102
_ENDS = (".", "?", "!", "…")
"""What ends a question as it is typed."""
_NEVER = -1e4
"""Log-odds of what cannot be, such as a span that ends before it begins."""
Floats = NDArray[np.float64]


class _Tokens(NamedTuple):
    """Tokens without special ones, and where each stands."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class Window(NamedTuple):
    """One input of the model: question, title with headings, and a run of the text's tokens."""

    passage: int
    """Index of its passage among those asked about."""
    first: int
    """Index of its first token among those of the text."""
    ids: list[int]
    question: int
    """How many tokens the question takes, with the special ones around it."""
    title: int
    """How many the title takes, without its part in brackets."""
    header: int
    """How many title and headings take."""
    offsets: list[tuple[int, int]]
    """Where each token of the text stands in it."""

    @property
    def type_ids(self) -> list[int]:
        """0 for the question, 1 for the rest."""
        return [0] * self.question + [1] * (len(self.ids) - self.question)

    @property
    def text(self) -> slice:
        """Where the tokens of the text are among `ids`."""
        return slice(self.question + self.header, len(self.ids) - 1)


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
    """The weights in `folder`, loaded on first use; thread-safe.

    `max_length` is that of one input in tokens, at least `SHORTEST_INPUT`.
    """

    def __init__(self, folder: Path, max_length: int, batch_size: int = 32) -> None:
        self._folder = folder.resolve()
        self._max_length = max_length
        self._batch_size = batch_size

    def views(self, question: str, passages: Sequence[Passage]) -> list[list[View]]:
        """Return for each passage its windows in order; an empty text has none."""
        return self.views_of([(question, passage) for passage in passages])

    def views_of(self, pairs: Sequence[tuple[str, Passage]]) -> list[list[View]]:
        """Do the same for pairs of a question and a passage, all of them in one batch."""
        windows = list(self._windows(pairs))
        by_pair: list[list[View]] = [[] for _ in pairs]
        for batch in self._loaded.encoder.hidden(windows, self._batch_size):
            for index, states in zip(batch.indices, batch.results, strict=True):
                by_pair[windows[index].passage].append(self._view(windows[index], states))
        return [sorted(views, key=lambda view: view.window.first) for views in by_pair]

    def grade(self, view: View) -> float:
        """Return the log-odds that a window serves the question."""
        blend = self._loaded.blend
        return float(view.signals @ blend[:-1] + blend[-1])

    def _windows(self, pairs: Sequence[tuple[str, Passage]]) -> Iterator[Window]:
        questions = list(dict.fromkeys(question for question, _ in pairs))
        passages = [passage for _, passage in pairs]
        known = dict(zip(questions, self._tokens(map(with_question_mark, questions)), strict=True))
        texts = self._tokens(passage.text[:MOST_CHARACTERS] for passage in passages)
        headers = self._tokens(map(_header, passages))
        for index, (passage, header, text) in enumerate(zip(passages, headers, texts, strict=True)):
            if not passage.text.strip():
                continue
            question_ids = known[pairs[index][0]]
            start = [_CLS, *question_ids.ids[:_QUESTION], _SEP]
            titled = header.ids[:_HEADER]
            room = self._max_length - len(start) - len(titled) - 1
            firsts = range(0, max(1, len(text.ids) - OVERLAP), room - OVERLAP)
            for first in self._nearest(firsts, text.ids, room, question_ids.ids):
                part = slice(first, first + room)
                yield Window(
                    passage=index,
                    first=first,
                    ids=[*start, *titled, *text.ids[part], _SEP],
                    question=len(start),
                    title=_title_tokens(passage, header),
                    header=len(titled),
                    offsets=text.offsets[part],
                )

    def _nearest(
        self, firsts: range, ids: Sequence[int], room: int, question_ids: Sequence[int]
    ) -> Sequence[int]:
        """Return the starts of the windows to read, in order."""
        if len(firsts) <= MOST_WINDOWS:
            return firsts
        rarity, words = self._loaded.rarity, set(question_ids)

        def shared(first: int) -> float:
            return float(rarity[list(words.intersection(ids[first : first + room]))].sum())

        return sorted(sorted(firsts, key=shared, reverse=True)[:MOST_WINDOWS])

    def _tokens(self, texts: Iterable[str]) -> list[_Tokens]:
        known = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self._loaded.encoder.encode(known)
        return [_Tokens(encoding.ids[1:-1], encoding.offsets[1:-1]) for encoding in encodings]

    def _view(self, window: Window, states: States) -> View:
        loaded = self._loaded
        output = loaded.outputs(states[0]).astype(np.float64)
        mark = loaded.marks(states).astype(np.float64)
        inside = mark[window.text]
        span = _best_span(inside[:, 1], inside[:, 2], float(mark[0, 1] + mark[0, 2]))
        best = np.sort(inside[:, 0])[-_BEST_EVIDENCE:].mean() if len(inside) else _NEVER
        signals = np.r_[output, span[2], best, loaded.features(window)]
        return View(window, signals, inside[:, 0], span)

    @cached_property
    def _loaded(self) -> "_Loaded":
        return _Loaded(self._folder)


class _Loaded:
    """Encoder, heads, and what the grade is made with."""

    def __init__(self, folder: Path) -> None:
        self._weights = restored(official_weights(), read_tensors(folder / DELTA))
        self.encoder = MiniLM(self._weights, max_length=_UNCUT, name="reader")
        stored = read_tensors(folder / GRADE)
        self.rarity = stored["rarity"].astype(np.float32)
        self.blend: Floats = stored["blend"].astype(np.float64)
        if len(self.blend) != len(SIGNALS) + len(FEATURES) + 1:
            message = f"{folder / GRADE} belongs to another version; train the reader again"
            raise EvaluatorError(message)

    def outputs(self, first: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return entity and answer from the state of the first position."""
        return layer(self._weights, "outputs", pooled(self._weights, first))

    def marks(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return evidence, first and last (length, 3)."""
        return layer(self._weights, "marks", states)

    def features(self, window: Window) -> list[float]:
        """Return the lexical features of a window."""
        ids = np.asarray(window.ids)
        title = ids[window.question : window.question + window.title]
        return features(ids[1 : window.question - 1], title, ids[window.text], self.rarity)


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


def _header(passage: Passage) -> str:
    titles = " > ".join(part for part in (passage.title, passage.section) if part.strip())
    return f"{titles} // " if titles else ""


def _title_tokens(passage: Passage, header: _Tokens) -> int:
    length = len(bare_title(passage.title))
    return sum(end <= length for _, end in header.offsets[:_HEADER])
