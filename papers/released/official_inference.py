"""CRAG's released inference as a whole, and crag's row with published knowledge, asked the same.

Both read a made-up folder with the faults of the published ones. Compared are the prompts, in the
official wording, which is read from the program itself, and the answers after its cleaning.
"""

import asyncio
import inspect
from collections.abc import Iterator, Sequence
from contextlib import chdir
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

from crag.papers.bench.answering import Answerer, Resources
from crag.papers.bench.experiments import Variant
from crag.papers.bench.units import Unit
from crag.papers.loading.crag import read as read_folder
from crag.papers.released.audit_published import wording
from crag.papers.released.crag_inputs import (
    FOLDERS,
    THRESHOLDS,
    Folder,
    drawing,
    evaluator,
    folder_of,
    reply_of,
)
from crag.papers.released.official_program import Count, run_main, stand_in
from crag.papers.released.reflection import released_answer
from crag.papers.tasks import profile_of
from crag.parts import Parts
from crag.prompts import Prompts
from crag.testing import FakeChatModel, FakeRetriever

PATHS = {"selfrag_llama": "selfrag", "llama": "llama"}
"""For each generator a path that tells the program which one it is."""

Pairs = list[tuple[str, str]]
"""Prompt and answer of each question."""


class Inference(NamedTuple):
    """A task and a generator."""

    folder: str
    model: str
    retrieves: bool = True

    @property
    def name(self) -> str:
        """What is compared."""
        without = "" if self.retrieves else " without retrieval"
        return f"inference{without}, {self.folder}, {self.model}"

    def given(self, seed: int) -> Folder:
        """Draw the folder of a seed."""
        return folder_of(drawing(seed), self.folder)


INFERENCES = (
    *(Inference(folder, "selfrag_llama") for folder in FOLDERS),
    Inference("pubqa", "llama"),
    *(Inference(folder, "selfrag_llama", retrieves=False) for folder in FOLDERS),
)
RUNS = 40
"""Folders for each of them, of five to eight questions."""


def compare(program: Any, scratch: Path, runs: int) -> Iterator[Count]:
    """Yield how many questions both ask and answer alike, over so many folders."""
    for one in INFERENCES:
        try:
            row = Row(one, wording_of(program, one))
        except TypeError:  # Without a paragraph the newer program fails for most tasks.
            yield Count(one.name, 0, 0, runs)
            continue
        pairs = [
            pair
            for seed in range(runs)
            for pair in zip_longest(infer(program, scratch, one, seed), row.pairs(seed))
        ]
        yield Count(one.name, sum(theirs == ours for theirs, ours in pairs), len(pairs))


def infer(program: Any, scratch: Path, asked: Inference, seed: int) -> Pairs:
    """Run the whole program."""
    (scratch / "scripts").mkdir(exist_ok=True)
    asked.given(seed).write(scratch / "data" / asked.folder)
    generator, (upper, lower) = _Generator(seed), THRESHOLDS[seed % len(THRESHOLDS)]
    data, out = f"../data/{asked.folder}", scratch / "answers"
    with (
        chdir(scratch / "scripts"),
        mock.patch.object(program, "LLM", return_value=generator),
    ):
        run_main(program, [
            "--generator_path", PATHS[asked.model], "--evaluator_path", "evaluator",
            "--input_file", f"{data}/test_{asked.folder}.txt", "--output_file", str(out),
            "--internal_knowledge_path", f"{data}/ref/correct",
            "--external_knowledge_path", f"{data}/ref/incorrect",
            "--combined_knowledge_path", f"{data}/ref/ambiguous", "--task", asked.folder,
            "--method", "crag" if asked.retrieves else "no_retrieval", "--ndocs", "10",
            "--upper_threshold", str(upper), "--lower_threshold", str(-lower),
        ])  # fmt: skip
    return list(zip(generator.prompts, out.read_text("utf-8").split("\n"), strict=True))


class Row:
    """The row of crag that reads published knowledge, or the one without retrieval."""

    def __init__(self, asked: Inference, prompts: Prompts) -> None:
        self._asked, self._chat = asked, FakeChatModel()
        parts = Parts(
            retriever=FakeRetriever(), evaluator=evaluator(), model=self._chat, prompts=prompts
        )
        self._answerer = Answerer(Resources(parts=parts, model="none", disarm=False))

    def pairs(self, seed: int) -> Pairs:
        """Ask each question of the folder of a seed."""
        return asyncio.run(self._answered(seed))

    async def _answered(self, seed: int) -> Pairs:
        task, (upper, lower) = FOLDERS[self._asked.folder], THRESHOLDS[seed % len(THRESHOLDS)]
        method = "crag_published" if self._asked.retrieves else "no_retrieval"
        settings = {"task": task, "upper": upper, "lower": lower}
        variant = Variant(name="published", method=method, settings=settings)
        with TemporaryDirectory() as place:
            self._asked.given(seed).write(Path(place))
            examples = read_folder(Path(place), task, as_published=True).examples
        self._chat.prompts.clear()
        for example in examples:
            await self._answerer.answer(Unit(variant, example, {}, 0))
        prompts = [str(messages[-1].content) for messages in self._chat.prompts]
        return [(prompt, released_answer(_reply(seed, prompt))) for prompt in prompts]


def wording_of(program: Any, asked: Inference) -> Prompts:
    """Return the official wording as a user would put it in."""
    task = FOLDERS[asked.folder]
    named = "modelname" in inspect.signature(program.format_prompt).parameters
    model = [asked.model] if named else []

    def officially(place: int, question: str, paragraph: str) -> str:
        shown = paragraph if asked.retrieves else None
        return str(program.format_prompt(place, asked.folder, question, shown, *model))

    return wording(officially, f"answer_{task}" if asked.retrieves else profile_of(task).own_prompt)


def _reply(seed: int, prompt: str) -> str:
    return reply_of(drawing(f"{seed}\n{prompt}"))


class _Generator:
    """A stand-in for vLLM's model that keeps what it was asked."""

    def __init__(self, seed: int) -> None:
        self.prompts: list[str] = []
        self._seed = seed

    def generate(self, prompts: Sequence[str], _: Any) -> list[Any]:
        """Return a reply to the one prompt, in the shape of vLLM's."""
        (prompt,) = prompts
        self.prompts.append(prompt)
        return [stand_in(outputs=[stand_in(text=_reply(self._seed, prompt))])]
