r"""Compare wordings of the prompt that asks for the answer, with a chat model of yours.

    python papers/measurements/answer_prompts.py DATA FOLDER [--model NAME --url URL] \
        [--only VARIANT…] [--all]

Documents and kept strips do not depend on the prompt, so they are computed once, in FOLDER, as the
graph `crag` computes them without the web; only the answer is asked again. Asked are questions over
documentation whose kept strips are not empty: four answerable and two unanswerable ones of each of
six corpora, or all of them. Each variant is a file in `answer_prompts/`, with a layout of the
strips if its name has one after a plus sign. Replies are kept in FOLDER too, so that a killed run
goes on.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from generator_questions import Verdict, is_worded, knows, load, verdict
from langchain_core.language_models import BaseChatModel

from crag.answering.citations import validate, without_citations
from crag.answering.context import fenced, kept_strips, numbered
from crag.answering.model_calls import Reply, aask
from crag.answering.outcome import NOT_FOUND, declines
from crag.asking.budget import Meter
from crag.correction.strips import score_of
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer, load_chat_model
from crag.graph import build_crag
from crag.papers.experiments.cache import Cache
from crag.papers.experiments.examples import Example
from crag.papers.experiments.report import table
from crag.papers.experiments.resources import metered
from crag.parts import Parts
from crag.prompts import Prompt, Prompts, parse
from crag.settings import Settings
from crag.state import State, Strip
from crag.testing import FakeRetriever
from crag.text.marks import as_mark
from crag.text.untrusted import neutral

VARIANTS = Path(__file__).parent / "answer_prompts"
ANSWERABLE, UNANSWERABLE = 4, 2
"""Questions of each corpus."""
LONGEST = 256
"""Tokens of a reply; more is cut."""
VERDICTS: tuple[Verdict, ...] = (
    "right", "other words", "wrong", "wordless", "declined", "made up",
)  # fmt: skip


class Case(NamedTuple):
    """A question with the strips that were kept for it."""

    example: Example
    strips: list[Strip]

    @property
    def knows(self) -> bool:
        """Whether the strips hold the evidence."""
        return knows(self.example, "\n".join(strip["text"] for strip in self.strips))


class Judged(NamedTuple):
    """What a model replied to one case."""

    reply: Reply
    verdict: Verdict
    cites: bool


def main() -> None:
    """Ask, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="local")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--only", nargs="*", default=[], help="variants to ask")
    parser.add_argument("--all", action="store_true", help="ask all questions that have strips")
    parser.add_argument("--limit", type=int, help="ask only the first so many questions")
    parser.add_argument("--details", action="store_true", help="print every reply")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    loaded = load("docs", given.data, given.folder / "docs.json")
    cases = [case for case in kept(loaded, given.folder) if case.strips]
    chosen = (cases if given.all else spread(cases))[: given.limit]
    cache = Cache(given.folder / "replies.sqlite")
    asked = load_chat_model(given.model, base_url=given.url, timeout=1800, retries=0)
    model = metered(asked, cache, Meter())
    assert isinstance(model, BaseChatModel)
    names = given.only or sorted(path.stem for path in VARIANTS.glob("*.md"))
    print(results(asyncio.run(replies(names, chosen, model, details=given.details)), chosen))


def kept(examples: Sequence[Example], folder: Path) -> list[Case]:
    """Return what the graph keeps for each question, from `folder` where it is there."""
    path = folder / "strips.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if not all(example.id in known for example in examples):
        evaluator, settings = load_evaluator(), Settings()
        for example in examples:
            parts = Parts(
                retriever=FakeRetriever(documents=list(example.documents)),
                evaluator=evaluator,
                quoter=ExtractiveAnswerer(evaluator),
            )
            state = build_crag(parts).invoke({"question": example.question}, context=settings)
            known[example.id] = kept_strips(cast("State", state), settings)
        path.write_text(json.dumps(known), encoding="utf-8")
    return [Case(example, known[example.id]) for example in examples]


def spread(cases: Sequence[Case]) -> list[Case]:
    """Choose the first so many cases of each corpus, in turns."""
    taken: Counter[tuple[object, bool]] = Counter()
    chosen = []
    for case in cases:
        answerable = bool(case.example.answers)
        place, most = (case.example.extra["corpus"], answerable), UNANSWERABLE
        if answerable:
            most = ANSWERABLE
        if taken[place] < most:
            chosen.append((taken[place] / most, case))
            taken[place] += 1
    return [case for _, case in sorted(chosen, key=lambda ranked: ranked[0])]


async def replies(
    names: Sequence[str], cases: Sequence[Case], model: BaseChatModel, *, details: bool = False
) -> dict[str, list[Judged]]:
    """Ask each case in each variant; variants of a case follow each other.

    A server that keeps what it has read then reads a common beginning once.
    """
    found: dict[str, list[Judged]] = {name: [] for name in names}
    prompts = {name: variant(name) for name in names}
    limited = cast("BaseChatModel", model.bind(max_tokens=LONGEST))
    for done, case in enumerate(cases, start=1):
        for name, (prompt, layout) in prompts.items():
            strips = laid_out(case.strips, layout)
            messages = Prompts({"answer_default": prompt}).render(
                "answer_default",
                question=neutral(case.example.question),
                knowledge=written(strips, layout),
                not_found=NOT_FOUND,
            )
            reply = await aask(limited, messages)
            assert reply.problem in {None, "empty"}, reply.detail
            found[name].append(one := judged(case, reply, strips))
            if details:
                print(name, case.example.id, one.verdict, repr(reply.text), sep=" | ", flush=True)
        print(f"{done}/{len(cases)}", end="\r", file=sys.stderr, flush=True)
    return found


def variant(name: str) -> tuple[Prompt, str]:
    """Return the prompt of a variant and the layout of its strips."""
    prompt, _, layout = name.partition("+")
    path = VARIANTS / f"{prompt}.md"
    return parse(path.read_text("utf-8"), "answer_default", path), layout


def laid_out(strips: Sequence[Strip], layout: str) -> list[Strip]:
    """Order and choose strips: `best` first or `last`, `three` or `five` best ones, `untitled`."""
    found = list(strips)
    if layout in {"best", "last", "three", "five"}:
        found.sort(key=score_of, reverse=layout != "last")
    most = {"three": 3, "five": 5}.get(layout)
    if layout == "untitled":
        found = [{**strip, "source": {**strip["source"], "title": ""}} for strip in found]
    return found[:most]


def written(strips: Sequence[Strip], layout: str) -> str:
    """Write the strips for the model: as the graph does, or as a list with `numbers` in front."""
    if layout != "numbers":
        return fenced(strips)
    return "\n\n".join(
        f"{as_mark(one['number'])} {neutral(one['source']['title'])}\n{neutral(one['text'])}"
        for one in numbered(strips)
    )


def judged(case: Case, reply: Reply, strips: Sequence[Strip]) -> Judged:
    """Judge the reply itself, before anything takes its place."""
    cites = bool(validate(reply.text, numbered(strips)).citations)
    declined = declines(reply.text)
    worded = is_worded(without_citations(reply.text))
    said = verdict(case.example, reply.text, abstained=declined)
    return Judged(reply, said, cites and worded and not declined)


def results(found: Mapping[str, Sequence[Judged]], cases: Sequence[Case]) -> str:
    """Return the table of the variants."""
    return table(_HEAD, (_cells(name, judged, cases) for name, judged in found.items()))


_HEAD = (
    "variant", "right", "other words", "wrong", "wordless", "declined", "right where strips know",
    "made up", "wordless there", "worded without a number", "tokens in", "tokens out",
)  # fmt: skip


def _cells(name: str, judged: Sequence[Judged], cases: Sequence[Case]) -> list[str]:
    pairs = list(zip(cases, judged, strict=True))
    able = Counter(one.verdict for case, one in pairs if case.example.answers)
    unable = Counter(one.verdict for case, one in pairs if not case.example.answers)
    known = [one.verdict in {"right", "other words"} for case, one in pairs if case.knows]
    spoken = [one for one in judged if one.verdict not in {"wordless", "declined"}]
    return [
        name,
        *(str(able[said]) for said in ("right", "other words", "wrong", "wordless", "declined")),
        f"{sum(known)} of {len(known)}",
        f"{unable['made up']} of {sum(unable.values())}",
        str(unable["wordless"]),
        f"{sum(not one.cites for one in spoken)} of {len(spoken)}",
        f"{mean(one.reply.usage['input_tokens'] for one in judged):.0f}",
        f"{mean(one.reply.usage['output_tokens'] for one in judged):.0f}",
    ]


def mean(values: Iterable[float]) -> float:
    """Return the mean, 0 of nothing."""
    numbers = list(values)
    return sum(numbers) / max(1, len(numbers))


if __name__ == "__main__":
    main()
