"""The same program over any store: Chroma, PostgreSQL, any `VectorStore` of LangChain.

    python docs/examples/stores.py [LOCATION]

LOCATION is a folder (Chroma), or an address that `--help` lists; without it, a temporary folder.
`stores:shelf://./FOLDER` is the function below. Needs no key, and no network but that of the store.
"""

import argparse
import tempfile
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import crag
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.index import IndexRetriever, index_paths, open_index
from crag.index.backends import STORES
from crag.models.encoder import packaged_encoder
from crag.parts import Parts

FILES = {
    "merrow.md": "# Cape Merrow\n\nThe lighthouse of Cape Merrow was designed by Edith Halloran.\n",
    "salt.md": "# Salt roads\n\nSalt was carried inland on old roads. Each cart paid a toll.\n",
}
QUESTIONS = ["Who designed the lighthouse of Cape Merrow?", "How deep is Lake Baikal?"]


def shelf(embeddings: Embeddings) -> InMemoryVectorStore:
    """Return a store; the class of any other one goes here."""
    return InMemoryVectorStore(embeddings)


def ask(location: str, folder: Path) -> None:
    """Index the files of `folder` at `location`, and ask the questions."""
    evaluator = load_evaluator()
    with open_index(location, packaged_encoder()) as index:
        report = index_paths([folder], index)
        print(f"{report.added} added, {report.unchanged} unchanged")
        parts = Parts(
            retriever=IndexRetriever(index),
            evaluator=evaluator,
            quoter=ExtractiveAnswerer(evaluator),  # or `model`, any LangChain chat model
        )
        documents = crag.open(parts=parts)
        for question in QUESTIONS:
            answer = documents.ask(question)
            sources = [Path(cited["source"]["url"]).name for cited in answer.citations]
            print(f"{answer.action}: {answer} {', '.join(sources)}")


def main() -> None:
    """Write the files, and ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("location", nargs="?", help=", ".join(STORES))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "documents")
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        ask(given.location or str(Path(temporary, "index")), folder)


if __name__ == "__main__":
    main()
