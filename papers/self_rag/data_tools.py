"""What makes a generator's data: a critic and an index."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from crag.cli.terminal import environment
from crag.factory.embeddings import choose_encoder
from crag.index import DocumentIndex, IndexRetriever
from crag.models.model_card import CARD
from crag.papers.loading.records import read_records
from crag.papers.self_rag.critic import critic_recipe, load_critic
from crag.papers.self_rag.critique_cases import KINDS
from crag.papers.self_rag.generator_data import (
    DataRules,
    Judging,
    Pair,
    Retrieve,
)
from crag.papers.self_rag.released_critic import (
    NO_WORDING,
    Wording,
    released_preamble,
    released_wording,
)
from crag.papers.self_rag.truth_critic import TruthCritic
from crag.papers.self_rag.truths import read_truths
from crag.parts import Passage


class CriticTools(NamedTuple):
    """Where critic and passages are."""

    critic: Path | None
    truth: tuple[Path, ...]
    """Without a critic, the files that hold the truth."""
    pairs: tuple[Path, ...]
    """The files of the pairs, which say what question each was made from."""
    location: str | None
    device: str | None
    rules: DataRules

    def passages(self) -> int:
        """Return how many passages the index holds."""
        return self._index().count()

    def digest(self) -> str:
        """Return a digest of what judges: the critic's card, or the files that hold the truth."""
        card = self.critic / CARD if self.critic else None
        files = [path for path in (*self.truth, card) if path and path.is_file()]
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()

    def words(self) -> tuple[Wording, str]:
        """Return the instructions and the preamble of a critic in the released form.

        Raises:
            SettingsError: it is in the released form, and one of them cannot be read.
        """
        if self.critic is None or critic_recipe(self.critic).get("form") != "released":
            return NO_WORDING, ""
        return released_wording(self.rules.wording, KINDS), released_preamble(self.rules.preamble)

    def load(self) -> tuple[Judging, Retrieve]:
        """Load the critic and open the index.

        Raises:
            CragError: one of them cannot be used.
        """
        retriever = IndexRetriever(self._index())

        def retrieve(query: str) -> list[Passage]:
            documents = retriever.invoke(query, k=self.rules.passages)
            return [Passage(str(d.metadata.get("title", "")), d.page_content) for d in documents]

        return self._judge(), retrieve

    def _judge(self) -> Judging:
        if self.critic is None:
            truths = [truth for path in self.truth for truth in read_truths(path)]
            pairs = [pair for path in self.pairs for pair in read_records(path, Pair)]
            return TruthCritic(truths, pairs)
        wording, preamble = self.words()
        return load_critic(
            self.critic, device=self.device, weights=self.rules.weights, wording=wording,
            preamble=preamble,
        )  # fmt: skip

    def _index(self) -> DocumentIndex:
        found = environment(self.location)
        return DocumentIndex(found.index, choose_encoder(found))
