"""Ask documents for somebody at a terminal, who sees the answer while it is written."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from crag.api import Answer, OpenDocuments, Question, open_documents
from crag.cli.terminal import assigned, import_from_here
from crag.settings import Settings
from crag.telemetry import start
from crag.text.untrusted import without_controls


def opened(
    location: str | None, settings: Sequence[str] | None, folder: str | None, method: str
) -> OpenDocuments:
    """Open documents with the options of a command; telemetry watches them from here on.

    Raises:
        CragError: a setting or a part cannot be used, or there is no index.
    """
    given = assigned(settings)
    if folder is not None:  # One that is there is named from wherever it is asked.
        given["folder"] = str(Path(folder).resolve()) if Path(folder).exists() else folder
    chosen = Settings.model_validate(given)
    import_from_here([location or ""])
    start()
    return open_documents(location, method=method, settings=chosen)


def ask(documents: OpenDocuments, question: Question) -> Answer:
    """Return the answer; a draft of it shows until then.

    Raises:
        KeyboardInterrupt: Ctrl-C; the calls that the graph waited for are cancelled.
    """
    return asyncio.run(_streamed(documents, question))


async def _streamed(documents: OpenDocuments, question: Question) -> Answer:
    draft, reply = "", None
    console = Console(stderr=True, quiet=not sys.stderr.isatty())
    with Live(console=console, transient=True, redirect_stdout=False) as live:
        async for piece in documents.astream(question):
            if isinstance(piece, Answer):
                return piece
            draft, reply = (draft if piece.reply == reply else "") + piece.text, piece.reply
            live.update(Markdown(without_controls(draft), hyperlinks=False))
    raise AssertionError("a stream ends with the answer")
