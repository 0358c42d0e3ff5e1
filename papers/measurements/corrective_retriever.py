r"""What one line, `CorrectiveRetriever`, does to the context of a plain LCEL chain.

    python papers/measurements/corrective_retriever.py QUESTIONS.jsonl [--pooled] [--k N] \
        [--limit N]

Each line holds a question, its gold answers and the documents retrieved for it. The chain's
retriever returns these documents in their order, or, with --pooled, the k nearest of the documents
of all questions, by the packaged encoder in a vector store. There is no web, so Incorrect leaves no
context. A context holds an answer if any gold answer is a substring of it, case-sensitive.
Intervals of differences are of the paired bootstrap over questions.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from popqa import documents_of, holds, share

from crag.evaluators import load_evaluator
from crag.langchain import CorrectiveRetriever
from crag.models.encoder import official_encoder
from crag.papers.experiments.paired import paired_difference
from crag.papers.experiments.report import table as markdown
from crag.papers.training.records import read_objects
from crag.parts import Evaluator
from crag.settings import Settings
from crag.state import ACTIONS, Thresholds
from crag.testing import FakeRetriever

BUDGETS = (50, 100, 200, 400)
"""Words of context."""
ONE_LINE = Settings()
BEST_FIRST = Settings(strips_kept=100, strip_threshold=None, strip_order="score")
"""More strips than a budget takes, so that the context is filled and cutting it loses the worst."""


class Contexts(NamedTuple):
    """The contexts that the chains gave their prompt for one question."""

    answers: Sequence[str]
    action: str
    plain: str
    corrected: str
    """With the default settings."""
    ranked: str
    """With `BEST_FIRST`."""


class Remembering:
    """Ask an evaluator once for each text of a question, whichever chain wants to know."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[tuple[str, str], float] = {}

    @property
    def thresholds(self) -> Thresholds:
        """The evaluator's."""
        return self._evaluator.thresholds

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the evaluator's scores, in order."""
        new = [text for text in dict.fromkeys(texts) if (question, text) not in self._known]
        for text, score in zip(new, self._evaluator.score(question, new), strict=True):
            self._known[question, text] = score
        return [self._known[question, text] for text in texts]


def main() -> None:
    """Run the chains on every question and print the tables."""
    parser = argparse.ArgumentParser(description="Correct the context of a plain LCEL chain.")
    parser.add_argument("questions", type=Path, help="JSONL of question, answers, documents")
    parser.add_argument("--pooled", action="store_true", help="retrieve from all documents")
    parser.add_argument("--k", type=int, default=10, help="documents to retrieve (default 10)")
    parser.add_argument("--limit", type=int, help="use only the first questions")
    arguments = parser.parse_args()
    rows = read_objects(arguments.questions)[: arguments.limit]
    pool = pooled(rows, arguments.k) if arguments.pooled else None
    evaluator = load_evaluator()
    results = [one(row, pool or given(row, arguments.k), evaluator) for row in rows]
    print(table(results))


def given(row: Mapping[str, Any], k: int) -> BaseRetriever:
    """Return a retriever of the question's own documents, in their order."""
    return FakeRetriever(documents=documents_of(row)[:k])


def pooled(rows: Sequence[Mapping[str, Any]], k: int) -> BaseRetriever:
    """Return the retriever of a vector store of all documents, each once."""
    distinct = {found.page_content: found for row in rows for found in documents_of(row)}
    store = InMemoryVectorStore.from_documents(list(distinct.values()), official_encoder())
    return store.as_retriever(search_kwargs={"k": k})


def one(row: Mapping[str, Any], retriever: BaseRetriever, evaluator: Evaluator) -> Contexts:
    """Run the same chain with the retriever as it is, and corrected."""
    question, judge = row["question"], Remembering(evaluator)
    corrected = CorrectiveRetriever(retriever=retriever, evaluator=judge, settings=ONE_LINE)
    ranked = CorrectiveRetriever(retriever=retriever, evaluator=judge, settings=BEST_FIRST)
    return Contexts(
        answers=row["answers"],
        action=str(corrected.correct(question)["action"]),
        plain=context(retriever, question),
        corrected=context(corrected, question),
        ranked=context(ranked, question),
    )


def context(retriever: BaseRetriever, question: str) -> str:
    """Return the context that a plain chain hands to its prompt."""
    chain = RunnableParallel(context=retriever | joined, question=RunnablePassthrough())
    return str(chain.invoke(question)["context"])


def joined(documents: Sequence[Document]) -> str:
    """Join documents as chains do."""
    return "\n\n".join(document.page_content for document in documents)


def cut(text: str, most: int) -> str:
    """Return the first words of a text."""
    return " ".join(text.split()[:most])


def table(results: Sequence[Contexts]) -> str:
    """Return a Markdown table: words (means), shares in per cent and their paired difference."""
    mix = Counter(result.action for result in results)
    actions = ", ".join(f"{mix[name]} {name}" for name in ACTIONS)
    names = ("compared", "words, plain", "words, corrected", "plain", "corrected", "difference")
    rows = []
    for name, (plain, corrected) in comparisons(results).items():
        theirs, ours = fits(results, plain), fits(results, corrected)
        lengths = [f"{words(plain):.0f}", f"{words(corrected):.0f}"]
        rows.append([name, *lengths, share(theirs), share(ours), difference(ours, theirs)])
    return f"{len(results)} questions: {actions}.\n\n{markdown(names, rows)}"


def comparisons(results: Sequence[Contexts]) -> dict[str, tuple[list[str], list[str]]]:
    """Return pairs of contexts: as they are, at the same length, and at half of it."""
    plain, corrected, ranked = (
        [getattr(result, name) for result in results] for name in ("plain", "corrected", "ranked")
    )
    as_corrected = [cut(p, len(c.split())) for p, c in zip(plain, corrected, strict=True)]
    half = [cut(r, len(p.split()) // 2) for r, p in zip(ranked, plain, strict=True)]
    found = {
        "one line, nothing else": (plain, corrected),
        "one line, plain cut to the same words": (as_corrected, corrected),
        "all of plain, best half as many words": (plain, half),
    }
    for budget in BUDGETS:
        first, best, fewer = (
            [cut(text, most) for text in texts]
            for texts, most in ((plain, budget), (ranked, budget), (ranked, budget // 2))
        )
        found[f"first {budget} words, best {budget}"] = (first, best)
        found[f"first {budget} words, best {budget // 2}"] = (first, fewer)
    return found


def words(texts: Sequence[str]) -> float:
    """Return the mean length in words."""
    return sum(len(text.split()) for text in texts) / len(texts)


def fits(results: Sequence[Contexts], texts: Sequence[str]) -> list[bool]:
    """Say of each context whether it holds an answer to its question."""
    return [holds(text, result.answers) for result, text in zip(results, texts, strict=True)]


def difference(ours: Sequence[bool], theirs: Sequence[bool]) -> str:
    """Return the difference of two shares in points, with the interval of the paired bootstrap."""
    gain = paired_difference(ours, theirs, 0)
    return f"{100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


if __name__ == "__main__":
    main()
