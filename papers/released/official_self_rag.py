"""Self-RAG's released programs and ours, asked the same with the same scripted model.

Each case is a program, its arguments and a kind of model; each seed of a case is another model.
What the programs answered is recorded for the tests, which have no checkout of them (`RECORDED`).
"""

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple
from unittest import mock

from crag.papers.released.long_form import released_long_form
from crag.papers.released.official import Case, program, run_main, stand_in, stand_ins
from crag.papers.released.reflection import released_settings, released_short_form
from crag.papers.released.scripted_model import (
    ScriptedModel,
    ScriptedReflection,
    Style,
    VllmModel,
    VllmTokenizer,
)
from crag.papers.tasks import profile_of
from crag.parts import Passage
from crag.reflection.driver import Asked, Driver
from crag.settings import Mode
from crag.state import OfferedPassage

CHECKOUT = "self-rag/retrieval_lm"
RECORDED = Path("tests/papers/released/self_rag.jsonl")
PASSAGES = tuple(Passage(f"Title {place}", f"Text {place}.") for place in range(3))
QUESTION = "Who wrote Note G?"
WORDY = Style(breaks=0.1, spaces=0.1)
TOKENLESS = WORDY._replace(has_tokens=False)

Answer = tuple[str, list[str]]
"""The text, and the titles of the passages that it cites."""


class Asking(NamedTuple):
    """Questions to one program."""

    name: str
    program: Literal["asqa", "biography", "open", "closed"]
    style: Style = Style()
    mode: Mode = "always"
    ignore_no_support: bool = False

    @property
    def is_short(self) -> bool:
        """Whether the program is that of the short form."""
        return self.program in {"open", "closed"}


ASKINGS = (
    Asking("ASQA", "asqa"),
    Asking("ASQA, ignore_no_support", "asqa", ignore_no_support=True),
    Asking("ASQA, line breaks", "asqa", Style(breaks=0.1)),
    Asking("ASQA, leading spaces", "asqa", Style(spaces=1.0)),
    Asking("ASQA, adaptive", "asqa", WORDY, "adaptive"),
    Asking("ASQA, everything at once", "asqa", WORDY, ignore_no_support=True),
    Asking("ASQA, a model without tokens", "asqa", TOKENLESS),
    Asking("ASQA, adaptive, a model without tokens", "asqa", TOKENLESS, "adaptive"),
    Asking("Biography", "biography"),
    Asking("Biography, ignore_no_support", "biography", ignore_no_support=True),
    Asking("Biography, line breaks", "biography", Style(breaks=0.1)),
    Asking("Biography, leading spaces", "biography", Style(spaces=1.0)),
    Asking("Biography, a model without tokens", "biography", TOKENLESS),
    Asking("short form, open", "open", WORDY),
    Asking("short form, open, adaptive", "open", WORDY, "adaptive"),
    Asking("short form, open, no retrieval", "open", WORDY, "never"),
    Asking("short form, open, a model without tokens", "open", TOKENLESS),
    Asking("short form, closed", "closed", WORDY),
    Asking("short form, closed, adaptive", "closed", WORDY, "adaptive"),
    Asking("short form, closed, no retrieval", "closed", WORDY, "never"),
    Asking("short form, closed, a model without tokens", "closed", TOKENLESS),
)
"""Biography without retrieval is missing: there the released program fails."""


def limits_of(seed: int) -> dict[str, Any]:
    """Return what both programs are told alike; every combination comes once in 105 seeds."""
    return {
        "delta": (0.2, 0.0, 0.5, 0.9, 1.0)[seed % 5],
        "beam_width": (2, 1, 3)[seed % 3],
        "max_depth": (5, 2, 4, 3, 6, 5, 7)[seed % 7],
    }


def ours(case: Asking, seed: int) -> Answer:
    """Return what crag answers as the released program."""
    task = {"open": "popqa", "closed": "pubhealth"}.get(case.program, case.program)
    settings = released_settings({
        "task": task, "form": "short" if case.is_short else "long", "released": True,
        "log_ratio": case.is_short, "retrieval_mode": case.mode, "max_new_tokens": 40,
        "ignore_no_support": case.ignore_no_support, **limits_of(seed),
    })  # fmt: skip
    asked_as = "popqa" if task == "biography" else task
    passages = tuple(
        OfferedPassage(title=one.title, text=one.text, label="document", grade="", strips=[])
        for one in PASSAGES
    )
    instruction = profile_of(asked_as).instruction_for(QUESTION)
    asked = Asked(instruction, QUESTION, closed=case.program == "closed", passages=passages)
    driver = Driver(ScriptedReflection(ScriptedModel(seed, case.style), case.style), settings)
    record = (released_short_form if case.is_short else released_long_form)(asked, driver)
    cited = [record["passages"][place]["title"] for place in record["cited"]]
    return record["answer"], cited if case.program == "asqa" else []


@contextlib.contextmanager
def released(official: Path) -> Iterator["Released"]:
    """Load both programs from the folder of the checkouts."""
    folder, modules = official / CHECKOUT, stand_ins()
    with (
        program(folder, "run_long_form_static", modules) as long,
        program(folder, "run_short_form", modules) as short,
        TemporaryDirectory() as scratch,
    ):
        rerank = short.call_model_rerank_w_scores_batch

        def without_depth(*given: Any, max_depth: int, **named: Any) -> Any:
            del max_depth  # main passes it, and the function does not take it.
            return rerank(*given, **named)

        with mock.patch.object(short, "call_model_rerank_w_scores_batch", without_depth):
            yield Released(long, short, Path(scratch))


class Released:
    """Both programs, ready to be asked."""

    def __init__(self, long: Any, short: Any, scratch: Path) -> None:
        self._long, self._short, self._scratch = long, short, scratch

    def answer(self, case: Asking, seed: int) -> Answer | None:
        """Return what the program answers; None where it fails."""
        program = self._short if case.is_short else self._long
        model = VllmModel(ScriptedModel(seed, case.style))
        with (
            mock.patch.object(program, "LLM", return_value=model),
            mock.patch.object(program, "AutoTokenizer", _tokenizers(case.style)),
        ):
            try:
                return self._run(program, case, limits_of(seed))
            # Of the one path of no words it asks for the second, and of no words for the first.
            except (KeyError, IndexError):
                return None

    def _run(self, program: Any, case: Asking, limits: dict[str, Any]) -> Answer:
        asked, out = self._scratch / "asked.json", self._scratch / "answered"
        row = _ROWS[case.program] | {"ctxs": _CONTEXTS, "docs": _CONTEXTS}
        asked.write_text(json.dumps([row]), "utf-8")
        run_main(program, [
            "--model_name", "scripted", "--input_file", str(asked), "--output_file", str(out),
            "--max_new_tokens", "40", "--ndocs", str(len(PASSAGES)), "--use_utility",
            "--use_seqscore", "--threshold", str(limits["delta"]),
            "--max_depth", str(limits["max_depth"]), "--beam_width", str(limits["beam_width"]),
            "--mode", _MODES[case.mode], *_ARGUMENTS[case.program],
            *(["--ignore_cont"] if case.ignore_no_support else []),
        ])  # fmt: skip
        written = json.loads(out.read_text("utf-8"))
        match case.program:
            case "asqa":
                row = written["data"][0]
                return row["output"], [passage["title"] for passage in row["docs"]]
            case "biography":
                return written["output"], []
            case _:
                return written["preds"][0], []


_CONTEXTS = [{"title": passage.title, "text": passage.text} for passage in PASSAGES]
_MODES = {"always": "always_retrieve", "adaptive": "adaptive_retrieval", "never": "no_retrieval"}
_ROWS: dict[str, dict[str, Any]] = {
    "asqa": {"question": QUESTION},
    "biography": {"input": QUESTION, "topic": "", "cat": []},
    "open": {"question": QUESTION, "answers": [""]},
    "closed": {"question": QUESTION, "answers": [""]},
}
_ARGUMENTS = {
    "asqa": ["--task", "asqa", "--use_grounding"],
    "biography": ["--task", "factscore", "--use_grounding"],
    "open": ["--task", "popqa", "--use_groundness", "--metric", "match"],
    "closed": ["--task", "fever", "--use_groundness", "--metric", "match"],
}


def _tokenizers(style: Style) -> Any:
    return stand_in(from_pretrained=lambda *_, **__: VllmTokenizer(style))


def _case(asking: Asking) -> Case:
    return Case(
        asking.name,
        300,
        lambda programs, seed: programs.answer(asking, seed),
        partial(ours, asking),
    )


CASES = tuple(map(_case, ASKINGS))
