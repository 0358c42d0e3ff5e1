"""`--in`: which files of the index a question is about."""

from collections import Counter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from crag.cli.terminal import from_here
from crag.errors import SettingsError

if TYPE_CHECKING:
    from crag.runtime.environment import Environment

_MOST_NAMED = 12


def absolute(folder: str | None) -> str | None:
    """Return the absolute path of a folder or file that exists, and any other name as it is."""
    return str(Path(folder).resolve()) if folder and Path(folder).exists() else folder


def require_folder(folder: str, retriever: Any, environment: "Environment") -> None:
    """Refuse a folder in which the index has nothing.

    Raises:
        SettingsError: the message names the folders of the index that have most files.
    """
    from crag.factory.indexing import choose_encoder
    from crag.index import DocumentIndex
    from crag.runtime.attempt import Attempt

    documents = None
    with Attempt("retriever"):  # What fails here fails in the run too, which says so.
        documents = retriever.invoke(folder, k=1, folder=folder)
    if documents or documents is None:
        return
    index = DocumentIndex(environment.index, choose_encoder(environment))
    folders = Counter(from_here(str(PurePath(file["path"]).parent)) for file in index.files())
    named = ", ".join(name for name, _ in folders.most_common(_MOST_NAMED))
    more = f" and {len(folders) - _MOST_NAMED} more" if len(folders) > _MOST_NAMED else ""
    raise SettingsError(
        "--in", folder, f"the index has no such folder or file; it has {named}{more}"
    )
