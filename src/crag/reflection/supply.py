"""Which passages the hypotheses of a beam search are offered."""

from collections.abc import Mapping, Sequence

from crag.reflection.backend import Passage
from crag.reflection.critiques import Offered
from crag.reflection.exchange import Asked, Retrieve, Steps
from crag.reflection.hypotheses import Hypothesis
from crag.reflection.options import Options
from crag.reflection.records import Flag, PassageRecord


class Supply:
    """The same passages for every segment, or those that a search for each finds."""

    def __init__(self, asked: Asked, options: Options) -> None:
        self._asked, self._options = asked, options
        self.offered = Offered()
        """Every passage of the search once."""
        self.static: list[int] | None = None
        """The passages for every segment, by index; None: not asked for yet."""
        self.flags: list[Flag] = []

    def resume(self, passages: Sequence[PassageRecord], static: list[int] | None) -> None:
        """Go on with what an earlier supply offered."""
        self.offered.add([Passage(entry["title"], entry["text"]) for entry in passages])
        self.static = static

    def found(
        self, searching: Mapping[int, Hypothesis], *, is_first: bool
    ) -> Steps[dict[int, list[int]]]:
        """Return the passages for each place of the beam that is to retrieve."""
        if not searching:
            return {}
        given = self._asked.passages
        is_static = self._options.segment_retrieval == "static"
        if is_static or (given is not None and is_first):
            if self.static is None:
                passages = given
                if passages is None:
                    passages = (yield [Retrieve(self._asked.query)])[0]
                self.static = self._add(passages or ())
            return dict.fromkeys(searching, self.static)
        queries = [Retrieve(self._query(hypothesis)) for hypothesis in searching.values()]
        found = yield queries
        return {place: self._add(p) for place, p in zip(searching, found, strict=True)}

    def offer(self, hypothesis: Hypothesis, places: Sequence[int]) -> list[int | None]:
        """Return what the hypothesis is extended with: passages, or one None without any."""
        used = hypothesis.used() if self._options.skip_used_passages else set[int]()
        left: list[int | None] = [place for place in places if place not in used]
        if not left:
            self.flags.append("passages_used_up" if places else "no_passages")
        return left or [None]

    def _query(self, hypothesis: Hypothesis) -> str:
        last = hypothesis.segments[-1].shown if hypothesis.segments else ""
        return f"{self._asked.query} {last}".strip()

    def _add(self, passages: Sequence[Passage]) -> list[int]:
        places = self.offered.add(passages)
        if len(places) < len(passages):
            self.flags.append("duplicate_passages")
        return places
