"""Measure questions by words: ranking the chunks that can be among the best, against ranking all.

    python papers/measurements/ranking_words.py CORPUS.jsonl 20000 100000 300000

Texts and questions are those of `large_index.py`; above 20,000 they come again under other ids, so
that the words are as common as before. There are no vectors. Times are of the processor.
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from langchain_core.documents import Document
from large_index import questions_of, texts_of
from timing import MEBIBYTE

from crag.index.backends.word_file import Change, WordFile
from crag.index.contract import EVERYTHING
from crag.text.words import question_words

DIFFERENT = 20_000
ASKED = 20
BATCH = 1024
ALL = """
SELECT id FROM words JOIN chunks ON number = words.rowid WHERE words MATCH ?
ORDER BY bm25(words, 1.0, 1.0), id LIMIT ?
"""


def chunks_of(corpus: Path, number: int) -> Iterator[Document]:
    """Yield `number` chunks."""
    records = list(texts_of(corpus, min(number, DIFFERENT)))
    for place in range(number):
        copy, which = divmod(place, len(records))
        record = records[which]
        about = {"title": record["title"], "source": f"{record['id']}-{copy}"}
        yield Document(record["text"], id=f"{record['id']}-{copy}", metadata=about)


def ranked_all(database: sqlite3.Connection, question: str, k: int) -> list[str]:
    """Return the ids of the best chunks, after ranking all that have a word of the question."""
    match = " OR ".join(f'"{word}"' for word in question_words(question))
    return [row[0] for row in database.execute(ALL, (match, k))]


def milliseconds(find: Callable[[str], Sequence[str]], questions: Sequence[str]) -> str:
    """Return the median and the most of what a question takes."""
    spent = []
    for question in questions:
        started = time.process_time()
        find(question)
        spent.append(1000 * (time.process_time() - started))
    return f"{statistics.median(spent):.1f}, {max(spent):.1f} ms"


def main() -> None:
    """Print a row for each size: writing, size, and questions with both ways of ranking."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="JSONL with text and title on each line")
    parser.add_argument("sizes", type=int, nargs="+", help="numbers of chunks")
    asked = parser.parse_args()
    questions = questions_of(asked.corpus)[:ASKED]
    print("| chunks | writing | on disk | first | median, most: ranking all | ranking few |")
    print("|---|---|---|---|---|---|", flush=True)
    for size in asked.sizes:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "words.sqlite3")
            with closing(WordFile(path, place)) as stored, closing(sqlite3.connect(path)) as other:
                chunks, started = chunks_of(asked.corpus, size), time.process_time()
                while part := list(islice(chunks, BATCH)):
                    stored.write("", Change(added=part))
                writing = time.process_time() - started

                for k in (10, 50):
                    for one in questions:
                        assert stored.find(one, k, EVERYTHING) == ranked_all(other, one, k)
                    before = milliseconds(partial(ranked_all, other, k=k), questions)
                    now = milliseconds(partial(stored.find, k=k, where=EVERYTHING), questions)
                    disk = path.stat().st_size / MEBIBYTE
                    print(
                        f"| {size:,} | {writing:.0f} s | {disk:.0f} MiB | {k} | {before} | {now} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
