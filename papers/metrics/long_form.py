"""Metrics of ASQA, after ALCE: short answers (str-em), similarity to references (ROUGE, MAUVE).

All of them first cut the answer at its first line break and remove its citations (Self-RAG, Sec.
4.1; ALCE, Sec. 3).
"""

import re
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from crag.asking.evaluate import normalise
from crag.errors import MissingPackageError
from crag.papers.bench.examples import Example, TaskName
from crag.papers.metrics.metric import Pairs, Row, RowMetric, SetMetric
from crag.papers.metrics.sentences import Splitter, sentences
from crag.text.marks import marks_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Features = Callable[[Sequence[str]], NDArray[np.float64]]

MAUVE_WORDS, MAUVE_MODEL, MAUVE_TOKENS = 100, "gpt2-large", 512
_CITED = re.compile(r" ?\[\d+")
_TASKS: frozenset[TaskName] = frozenset({"asqa"})


def first_line(answer: str) -> str:
    """Return what is scored: the text up to the first line break."""
    return answer.strip().split("\n", 1)[0].replace("<|im_end|>", "")


def single_marks(text: str) -> str:
    """Write ``[1, 2]`` as ``[1][2]``, the only marks that ALCE knows."""
    pieces, end = list[str](), 0
    for mark in marks_of(text):
        pieces += [text[end : mark.bracket], *(f"[{number}]" for number in mark.numbers)]
        end = mark.end
    return "".join([*pieces, text[end:]])


def without_citations(text: str) -> str:
    """Delete ``[1]`` with the space before it, and every closing bracket, as ALCE does.

    ``[1, 2]``, which ALCE does not handle, is deleted as well.
    """
    return _CITED.sub("", single_marks(text)).replace(" |", "").replace("]", "")


def str_em(answer: str, answers: Sequence[Sequence[str]]) -> float:
    """Return the share of sub-questions with a short answer in the answer.

    Substrings, both normalised; unlike the normalised match, parts of words count.
    """
    said = normalise(answer)
    found = [any(normalise(short) in said for short in group) for group in answers]
    return sum(found) / len(found)


def rouge_lsum(answer: str, references: Sequence[str], split: Splitter = sentences) -> float:
    """Return ROUGE-Lsum (F1, stemmed, lower-cased) with the reference it is highest with.

    Raises:
        MissingPackageError: rouge-score is missing.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingPackageError("rouge-score", "the metric rouge_lsum") from error
    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    said, *told = ("\n".join(split(text.lower())) for text in [answer, *references])
    return max(float(scorer.score(one, said)["rougeLsum"].fmeasure) for one in told)


def mauve_text(question: str, answer: str) -> str:
    """Return what MAUVE compares: question and answer, the first 100 words, no final stop."""
    words = f"{question} {answer.strip()}".split()[:MAUVE_WORDS]
    return " ".join(words).rstrip(string.punctuation)


def mauve(model: str = "", features: "Features | None" = None, *, device: int = -1) -> SetMetric:
    """Return MAUVE, the similarity of all answers to all references as two distributions.

    The package loads `model`, by hub name or folder, on `device` (-1 is the processor); published
    numbers are those of `MAUVE_MODEL`. Alternatively `features` turns texts into rows of numbers.
    Without either there is no value. Fewer than a hundred answers are not reliable.
    """

    def compute(pairs: Pairs) -> float | None:
        usable = [(one, row) for one, row in pairs if one.extra.get("reference")]
        human = [mauve_text(one.question, str(one.extra["reference"])) for one, _ in usable]
        said = [mauve_text(one.question, _cleaned(row)) for one, row in usable]
        if not usable or (features is None and not model):
            return None
        return _mauve(human, said, features, model, device)

    return SetMetric(
        name="mauve", compute=compute, tasks=_TASKS, package="mauve-text", needs="--mauve"
    )


def _mauve(
    human: Sequence[str], said: Sequence[str], features: "Features | None", model: str, device: int
) -> float:
    try:
        from mauve import compute_mauve
    except ImportError as error:
        raise MissingPackageError("mauve-text", "the metric mauve") from error
    given: dict[str, Any] = {"verbose": False}
    if features is None:
        given |= {"p_text": human, "q_text": said, "device_id": device, "batch_size": 8}
        given |= {"featurize_model_name": model, "max_text_length": MAUVE_TOKENS}
    else:
        given |= {"p_features": features(human), "q_features": features(said)}
    return float(compute_mauve(**given).mauve)


def _cleaned(row: Row) -> str:
    return without_citations(first_line(str(row["answer"])))


def _str_em(example: Example, row: Row) -> float | None:
    return str_em(_cleaned(row), example.answers) if example.answers else None


def _rouge(example: Example, row: Row) -> float | None:
    references = example.extra.get("references")
    if not isinstance(references, list) or not references:
        return None
    return rouge_lsum(_cleaned(row), [str(one) for one in references])


STR_EM = RowMetric(name="str_em", compute=_str_em, tasks=_TASKS)
"""ASQA's correctness: the mean share of sub-questions answered."""
ROUGE_LSUM = RowMetric(name="rouge_lsum", compute=_rouge, tasks=_TASKS, package="rouge-score")
"""ASQA's fluency against two references; sentences are split without NLTK's model, unlike in the
official script."""

METRICS = (STR_EM, ROUGE_LSUM, mauve())
