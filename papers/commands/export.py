"""`crag export`: a trained generator as a GGUF file for llama.cpp's server."""

from pathlib import Path

from rich.console import Console

from crag.cli.terminal import print_json, safe
from crag.papers.training.self_rag.gguf_export import export_gguf


def run(folder: Path, output: Path, *, as_json: bool) -> None:
    """Write the file, and tell how to serve it."""
    export_gguf(folder, output)
    size = output.stat().st_size
    if as_json:
        print_json({"output": str(output), "bytes": size})
        return
    console = Console(highlight=False)
    console.print(f"Written to {safe(output)} ({size / 1e6:,.0f} MB). Serve it:", soft_wrap=True)
    console.print(f"  llama-server --model {safe(output)} --ctx-size 16384", soft_wrap=True)
    console.print(
        "  CRAG_REFLECTION=server CRAG_REFLECTION_URL=http://127.0.0.1:8080/v1 "
        "crag ask QUESTION --method self-rag", soft_wrap=True,
    )  # fmt: skip
