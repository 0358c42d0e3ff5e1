"""`crag list`: the documents of the index."""

from crag.cli import options
from crag.cli.terminal import environment, from_here, print_json, safe, say
from crag.plain import counted


def list_documents(location: options.Index = None, as_json: options.Json = False) -> None:
    """List the documents of the index: chunks, path and title."""
    from crag.factory.embeddings import choose_encoder
    from crag.index import open_index

    chosen = environment(location)
    index = open_index(chosen.index, choose_encoder(chosen)).open()
    files = index.files()
    if as_json:
        print_json(files)
        return
    for file in files:
        title = f"  [dim]{safe(from_here(file['title']))}[/]" if file["title"] else ""
        say(f"{file['chunks']:>6,}  {safe(from_here(file['path']))}{title}")
    chunks = sum(file["chunks"] for file in files)
    say(f"{counted(len(files), 'file')}, {counted(chunks, 'chunk')}")
