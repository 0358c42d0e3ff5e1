"""What makes a generator's data: a critic and an index, in this process or in Ray workers."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from crag.bench.ray_workers import RETRIES, cluster, load_ray
from crag.cli.terminal import environment
from crag.errors import CragError
from crag.factory import choose_encoder
from crag.models.model_card import CARD
from crag.parts import Passage
from crag.retrieval import DocumentIndex, IndexRetriever
from crag.training.self_rag.critic import load_critic
from crag.training.self_rag.generator_data import (
    DataRules,
    Judging,
    Outcome,
    Outcomes,
    Pair,
    Retrieve,
    outcome_of,
)
from crag.training.self_rag.truth_critic import TruthCritic
from crag.training.self_rag.truths import read_truths

_AHEAD = 2
"""Pairs submitted per worker, so that no worker waits for the next one."""


class CriticTools(NamedTuple):
    """Where critic and passages are; on a cluster, the same places on each machine."""

    critic: Path | None
    truth: tuple[Path, ...]
    """Without a critic, the files that hold the truth."""
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
            return TruthCritic([truth for path in self.truth for truth in read_truths(path)])
        return load_critic(self.critic, device=self.device, weights=self.rules.weights)

    def _index(self) -> DocumentIndex:
        found = environment(self.location)
        return DocumentIndex(found.index, choose_encoder(found))


def ray_outcomes(tools: CriticTools, workers: int) -> Outcomes:
    """Return what makes the outcomes in Ray workers, in the order in which they are ready.

    If a worker dies, Ray gives its pair to another one. With a CUDA device each worker has a GPU
    of its own.

    Raises:
        MissingPackageError: ray is not installed.
    """
    ray = load_ray()
    gpus = int((tools.device or "").startswith("cuda"))
    place = Path(environment(tools.location).index)
    location = str(place.absolute()) if place.exists() else tools.location
    here = tools._replace(
        critic=tools.critic.absolute() if tools.critic else None,
        truth=tuple(path.absolute() for path in tools.truth),
        location=location,
    )

    def outcomes(pairs: Sequence[Pair]) -> Iterator[tuple[int, Outcome]]:
        with cluster(ray, workers):
            make = ray.remote(max_retries=RETRIES, num_gpus=gpus)(_outcome)
            pending: dict[Any, int] = {}
            left = iter(enumerate(pairs))
            while True:
                for place, pair in left:
                    pending[make.remote(here, pair)] = place
                    if len(pending) >= _AHEAD * workers:
                        break
                if not pending:
                    return
                (ready,), _ = ray.wait(list(pending), num_returns=1)
                yield pending.pop(ready), _taken(ray, ready)

    return outcomes


def _taken(ray: Any, ready: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CragError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        message = (
            f"a pair ended {RETRIES + 1} Ray workers or could not be sent to one ({error}). "
            "Finished records are kept: run again, or without --ray to see more"
        )
        raise CragError(message) from error
    return outcome


def _outcome(tools: CriticTools, pair: Pair) -> Outcome:
    """Make one outcome in a worker."""
    try:
        return outcome_of(pair, *_kept(tools), tools.rules)
    except CragError as error:
        raise CragError(str(error)) from None  # One that can be sent to another process.


@cache
def _kept(tools: CriticTools) -> tuple[Judging, Retrieve]:
    """Keep critic and index between pairs."""
    return tools.load()
