"""What correction changed: the knowledge of plain retrieval beside that of Corrective RAG."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crag.state import Strip


class Comparison(NamedTuple):
    """What became of the knowledge of plain retrieval."""

    dropped: list[Strip]
    """Documents that plain retrieval passed on, and of which correction kept nothing."""
    shortened: list[Strip]
    """Documents of which correction kept some strips and dropped others."""
    added: list[Strip]
    """Strips that correction kept and plain retrieval did not have, such as those of the web."""


def compare(plain: Mapping[str, Any], corrected: Mapping[str, Any]) -> Comparison:
    """Compare the strips in the states of both graphs after the same question."""
    before: Sequence[Strip] = plain["strips"]
    after: Sequence[Strip] = corrected["strips"]
    known = {strip["source"]["id"] for strip in before}
    kept = {strip["source"]["id"] for strip in after if strip["kept"]}
    cut = kept & {strip["source"]["id"] for strip in after if not strip["kept"]}
    return Comparison(
        dropped=[strip for strip in before if strip["source"]["id"] not in kept],
        shortened=[strip for strip in before if strip["source"]["id"] in cut],
        added=[strip for strip in after if strip["kept"] and strip["source"]["id"] not in known],
    )
