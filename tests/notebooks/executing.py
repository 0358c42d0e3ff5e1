"""Execute the notebooks offline and write them with their outputs: `make notebooks`.

A kernel of this interpreter runs them, each with no name of the one before, without keys, and with
every connection refused that would leave the machine (`offline/sitecustomize.py`).
"""

import argparse
import os
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
_OFFLINE = Path(__file__).parent / "offline"
_KEYS = ("OPENAI_", "TAVILY_", "SEARXNG_", "CRAG_", "LANGSMITH_", "LANGCHAIN_", "MPLBACKEND")
_LONGEST = 300
"""Seconds for one cell."""
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


class OwnKernel(AsyncKernelManager):
    """A kernel of this interpreter, whatever others the machine knows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **options)


def executed(notebooks: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    """Yield copies of notebooks with the outputs of a run in the folder of the notebooks.

    They share a kernel, because starting one and importing crag takes seconds.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    with TemporaryDirectory() as sockets:
        client = NotebookClient(
            nbformat.v4.new_notebook(),  # type: ignore[no-untyped-call]
            config=Config(OwnKernel={"transport": "ipc", "ip": f"{sockets}/kernel"}),
            kernel_manager_class=OwnKernel,
            timeout=_LONGEST,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(FOLDER)}},
        )
        with client.setup_kernel(env=_environment()):
            for notebook in notebooks:
                assert client.kc is not None
                client.kc.execute("get_ipython().reset()", silent=True)
                client.nb = deepcopy(notebook)
                client.execute(cleanup_kc=False)
                yield tidied(client.nb)


def tidied(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook without metadata that differ from machine to machine."""
    notebook.metadata = NotebookNode(kernelspec=_KERNEL, language_info={"name": "python"})
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
    return notebook


def read(path: Path) -> NotebookNode:
    """Return a notebook as it is written."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-any-return, no-untyped-call]


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook, refusing one that is not valid."""
    nbformat.validate(notebook)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def _environment() -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_KEYS)}
    paths = os.pathsep.join(filter(None, [str(_OFFLINE), kept.get("PYTHONPATH")]))
    return kept | {
        "PYTHONPATH": paths,
        "LANGSMITH_TRACING": "false",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # Its warning concerns debuggers only.
    }


def main() -> None:
    """Execute the notebooks named, or all, in place or into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS)
    parser.add_argument("--output", type=Path, help="a folder; left out: in place")
    arguments = parser.parse_args()
    results = executed(read(path) for path in arguments.notebooks)
    for path, result in zip(arguments.notebooks, results, strict=True):
        write(result, arguments.output / path.name if arguments.output else path)


if __name__ == "__main__":
    main()
