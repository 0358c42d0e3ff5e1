"""Metrics of ASQA, after ALCE: short answers (str-em), similarity to references (ROUGE, MAUVE).

All of them first cut the answer at its first line break and remove its citations (Self-RAG, Sec.
4.1; ALCE, Sec. 3).
"""

import re
import string
from collections.abc import Sequence

from crag.asking.evaluate import normalise
from crag.extras import require
from crag.papers.bench.examples import Example, TaskName
from crag.papers.metrics.metric import Metric, Pairs, Row
from crag.text.marks import marks_of

MAUVE_WORDS, MAUVE_TOKENS = 100, 512
_CITED = re.compile(r" ?\[\d+")
_TASKS: frozenset[TaskName] = frozenset({"asqa"})


def sentences(text: str) -> list[str]:
    """Return the sentences of an English text, without surrounding space.

    The official script has NLTK's model for this, which is not packaged.
    """
    from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] - compiled

    return [piece.strip() for piece in segment("en", text) if piece.strip()]


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


def rouge_lsum(answer: str, references: Sequence[str]) -> float:
    """Return ROUGE-Lsum (F1, stemmed, lower-cased) with the reference it is highest with.

    Raises:
        MissingPackageError: rouge-score is missing.
    """
    require("train", "the metric rouge_lsum", "rouge_score")
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeLsum"], use_stemmer=True)
    said, *told = ("\n".join(sentences(text.lower())) for text in [answer, *references])
    return max(float(scorer.score(one, said)["rougeLsum"].fmeasure) for one in told)


def mauve_text(question: str, answer: str) -> str:
    """Return what MAUVE compares: question and answer, the first 100 words, no final stop."""
    words = f"{question} {answer.strip()}".split()[:MAUVE_WORDS]
    return " ".join(words).rstrip(string.punctuation)


def mauve(model: str = "") -> Metric:
    """Return MAUVE, the similarity of all answers to all references as two distributions.

    The package loads `model`, by hub name or folder; published numbers are those of gpt2-large.
    Without it there is no value. Fewer than a hundred answers are not reliable.
    """

    def of_set(pairs: Pairs) -> float | None:
        usable = [(one, row) for one, row in pairs if one.reference]
        if not usable or not model:
            return None
        require("train", "the metric mauve", "mauve")
        from mauve import compute_mauve

        human = [mauve_text(one.question, one.reference) for one, _ in usable]
        said = [mauve_text(one.question, _cleaned(row)) for one, row in usable]
        found = compute_mauve(
            p_text=human, q_text=said, featurize_model_name=model, max_text_length=MAUVE_TOKENS,
            device_id=-1, batch_size=8, verbose=False,
        )  # fmt: skip
        return float(found.mauve)

    return Metric(name="mauve", of_set=of_set, tasks=_TASKS, needs="--mauve")


def _cleaned(row: Row) -> str:
    return without_citations(first_line(str(row["answer"])))


def _str_em(example: Example, row: Row) -> float | None:
    return str_em(_cleaned(row), example.answers) if example.answers else None


def _rouge(example: Example, row: Row) -> float | None:
    return rouge_lsum(_cleaned(row), example.references) if example.references else None


METRICS = (
    Metric(name="str_em", compute=_str_em, tasks=_TASKS),
    Metric(name="rouge_lsum", compute=_rouge, tasks=_TASKS),
    mauve(),
)
