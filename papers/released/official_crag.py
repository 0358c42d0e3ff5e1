"""CRAG's released programs and ours, asked the same made-up things.

Recorded are the answers of `CASES` (`RECORDED`).
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, get_args
from unittest import mock

from langchain_core.documents import Document

from crag.answering.context import paper_format
from crag.correction.action import decide
from crag.correction.scoring import with_title
from crag.correction.strips import joint_text, score_of
from crag.nodes.prepare_passages import PreparePassages
from crag.papers.bench.runner import left_armed
from crag.papers.decomposition import Decomposition, as_split, decompose
from crag.papers.loading.read import load_examples
from crag.papers.metrics import METRICS
from crag.papers.released.crag_inputs import (
    FOLDERS,
    NAMES,
    THRESHOLDS,
    chance,
    drawing,
    evaluator,
    judged,
    one_of,
    passage_of,
    reply_of,
    row_of,
    up_to,
    words_of,
)
from crag.papers.released.official import Case, program, run_main, stand_in, stand_ins
from crag.papers.released.reflection import released_answer, released_settings
from crag.papers.settings import PaperSettings
from crag.runtime.evaluator_calls import filter_strips
from crag.state import Source, Strip, StripKind

CHECKOUT, MEASURES = "CRAG/scripts", "self-rag/retrieval_lm"
"""CRAG's eval.py imports `metrics` of Self-RAG."""
RECORDED = Path("tests/papers/released/released.jsonl")
KEPT: Mapping[Decomposition, int] = {"selection": 3, "excerption": 6, "fixed_num": 6}
"""How many strips the released refinement keeps."""
_SCORED = {"popqa": "popqa", "pubqa": "fever", "arc_challenge": "arc_c"}
"""The folders whose answers eval.py scores, and its names of their tasks."""
_ACTIONS = ("incorrect", "ambiguous", "correct")


def _scores(seed: int) -> tuple[list[float], float, float]:
    draw = drawing(seed)
    upper, lower = one_of(draw, THRESHOLDS)
    down = one_of(draw, (0.0, 0.0, 1.0, 3.0))
    drawn = [draw.random() * 2 - 1 - down for _ in range(up_to(draw, 10))]
    scores = [one_of(draw, (upper, lower, -1.0)) if chance(draw, 0.1) else one for one in drawn]
    return scores, upper, lower


def _their_action(programs: "Released", seed: int) -> str:
    scores, upper, lower = _scores(seed)
    (flag,) = programs.inference.process_flag(scores, len(scores), upper, lower)
    return _ACTIONS[flag]


def _passages(seed: int) -> list[str]:
    draw = drawing(seed)
    return [passage_of(draw) for _ in range(up_to(draw, 4))]


def _as_read(seed: int) -> str:
    """Return passages on one line, which leaves spaces around them where it is split."""
    return " [sep] ".join(_passages(seed)).strip()


def _spaced_strips(seed: int) -> list[str]:
    given = _passages(seed)
    spaced = (as_split(text, place, len(given)) for place, text in enumerate(given))
    return [strip for text in spaced for strip in decompose(text, "fixed_num_spaced")]


def _strips(mode: Decomposition, name: str, runs: int) -> Case:
    return Case(
        name,
        runs,
        lambda programs, seed: programs.cut(_passages(seed), mode),
        lambda seed: [strip for text in _passages(seed) for strip in decompose(text, mode)],
    )


def _retrieved(seed: int) -> tuple[str, list[tuple[str, str]]]:
    """Draw a question, and passages of which all or none have a title."""
    draw = drawing(seed)
    title = one_of(draw, ("", one_of(draw, NAMES)))
    return words_of(draw, 6), [(title, passage_of(draw)) for _ in range(up_to(draw, 10))]


def _refinement(mode: Decomposition) -> Case:
    settings = PaperSettings(strips_kept=KEPT[mode], strip_threshold=None, titles="passage")

    def theirs(programs: "Released", seed: int) -> str | None:
        question, passages = _retrieved(seed)
        out = programs.scratch / "correct"
        texts = [with_title(*passage) for passage in passages]
        refine = programs.refinement.knowledge_refinement
        try:
            refine([texts], [question], str(out), "evaluator", "cpu", mode)
        except IndexError:  # It can make no strip of fewer than ten words.
            return None
        return out.read_text("utf-8").removeprefix("#")

    def ours(seed: int) -> str:
        question, passages = _retrieved(seed)
        strips = [
            _strip(part, "document", title)
            for title, text in passages
            for part in decompose(with_title(title, text), mode)
        ]
        return _best(question, strips, settings)

    return Case(f"refinement, {mode}", 400, theirs, ours)


def _paragraphs(seed: int) -> list[str]:
    """Draw paragraphs of web pages, as both programs write them before they are scored."""
    draw = drawing(seed)
    return [f"{one_of(draw, NAMES)}: {words_of(draw, 6)}" for _ in range(up_to(draw, 30))]


def _their_selection(programs: "Released", seed: int) -> str:
    select = programs.refinement.select_relevants
    return str(select(_paragraphs(seed), "Who?", _Evaluator(), _Evaluator(), "cpu", top_n=5)[0])


def _our_selection(seed: int) -> str:
    settings = PaperSettings(strips_kept=5, strip_threshold=None, titles="none")
    return _best("Who?", [_strip(text, "web") for text in _paragraphs(seed)], settings)


def _best(question: str, strips: list[Strip], settings: PaperSettings) -> str:
    """Keep the best strips, and write them in the order of their scores, as the official code."""
    with left_armed():
        kept = filter_strips(evaluator(), question, strips, settings, node="refine")[0]
        return paper_format({"strips": sorted(kept, key=score_of, reverse=True)})


def _strip(text: str, kind: StripKind, title: str = "") -> Strip:
    source = Source(id="", title=title, url="", position="")
    return Strip(text=text, kind=kind, source=source, score=None, kept=True, reason="")


def _rows(seed: int) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Draw rows of one task, and a reply to each."""
    draw = drawing(seed)
    name = one_of(draw, tuple(_SCORED))
    rows = [row_of(draw, name, place) for place in range(6)]
    return name, rows, [reply_of(draw).replace("\n", " ").strip() for _ in rows]


def _their_mean(programs: "Released", seed: int) -> str:
    name, rows, replies = _rows(seed)
    asked, answered = programs.scratch / "asked.jsonl", programs.scratch / "answered"
    _write_rows(asked, rows)
    answered.write_text("".join(f"{reply}\n" for reply in replies), "utf-8")
    printed = run_main(programs.scoring, [
        "--input_file", str(asked), "--eval_file", str(answered), "--metric", "match",
        "--task", _SCORED[name],
    ])  # fmt: skip
    return f"{float(printed.split()[-1]):.3f}"


def _our_mean(seed: int) -> str:
    name, rows, replies = _rows(seed)
    with TemporaryDirectory() as place:
        _write_rows(Path(place) / "asked.jsonl", rows)
        examples = load_examples(Path(place) / "asked.jsonl", FOLDERS[name]).examples
    found = [
        METRICS["match"].score(example, {"answer": reply, "outcome": "answered"})
        for example, reply in zip(examples, replies, strict=True)
    ]
    return f"{sum(filter(None, found)) / len(found):.3f}"


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _knowledge(seed: int) -> tuple[list[dict[str, Any]], list[list[str]], list[list[str]]]:
    """Draw rows, and for each the texts kept from its passages and those kept from the web."""
    draw = drawing(seed)
    rows = [row_of(draw, "popqa", place) for place in range(2)]
    kinds = [[[words_of(draw, 6) for _ in range(up_to(draw, 3))] for _ in rows] for _ in range(2)]
    return rows, kinds[0], kinds[1]


def _their_passages(programs: "Released", seed: int) -> list[Any]:
    rows, *kinds = _knowledge(seed)
    internal, external = (["; ".join(texts) for texts in kind] for kind in kinds)
    lines = {
        "correct": [f"#{text}" for text in internal],
        "incorrect": [f"#{text}" for text in external],
        "ambiguous": list(map(joint_text, internal, external)),
    }
    offered = programs.prepared(rows, lines)
    return [[[one["title"], one["text"]] for one in row["ctxs"]] for row in offered]


def _our_passages(seed: int) -> list[Any]:
    settings = released_settings({"task": "popqa", "self_crag_knowledge": "assembled"})
    offered = []
    for row, *kinds in zip(*_knowledge(seed), strict=True):
        strips = [
            _strip(text, kind)
            for kind, texts in zip(get_args(StripKind), kinds, strict=True)
            for text in texts
        ]
        documents = [Document(one["text"], metadata={"title": one["title"]}) for one in row["ctxs"]]
        state: Any = {"documents": documents, "strips": strips}
        update = PreparePassages(prepared=True).run(state, settings)
        passages = update["reflection"]["passages"]
        offered.append([[one["title"], one["text"]] for one in passages])
    return offered


CASES = (
    Case("action", 20_000, _their_action, lambda seed: decide(*_scores(seed))),
    _strips("excerption", "excerption", 10_000),
    _strips("fixed_num", "fixed_num, stripped passages", 5000),
    Case(
        "fixed_num, passages as read", 5000,
        lambda programs, seed: programs.cut(_as_read(seed).split("[sep]"), "fixed_num"),
        _spaced_strips,
    ),
    *map(_refinement, KEPT),
    Case("selection from the web", 400, _their_selection, _our_selection),
    Case(
        "answers", 10_000,
        lambda programs, seed: programs.inference.postprocess_answer_option_conditioned(
            reply_of(drawing(seed))
        ),
        lambda seed: released_answer(reply_of(drawing(seed))),
    ),
    Case("scores of answers", 1000, _their_mean, _our_mean),
    Case("Self-CRAG's passages, assembled", 200, _their_passages, _our_passages),
)  # fmt: skip


@contextlib.contextmanager
def released(official: Path) -> Iterator["Released"]:
    """Load the programs from the folder of the checkouts."""
    modules = stand_ins(stand_in(from_pretrained=lambda *_, **__: _Evaluator()))
    with contextlib.ExitStack() as opened:

        def load(name: str, folder: str = CHECKOUT) -> ModuleType:
            return opened.enter_context(program(official / folder, name, modules))

        inference = load("CRAG_Inference")
        modules["metrics"] = load("metrics", MEASURES)
        scratch = Path(opened.enter_context(TemporaryDirectory()))
        yield Released(
            inference, scratch, load("internal_knowledge_preparation"), load("data_process"),
            load("eval"),
        )  # fmt: skip


class Released:
    """The programs, ready to be asked."""

    def __init__(self, inference: Any, scratch: Path, *others: Any) -> None:
        self.inference, self.scratch = inference, scratch
        self.refinement: Any
        self.preparation: Any
        self.scoring: Any
        self.refinement, self.preparation, self.scoring = others or [None] * 3

    def cut(self, passages: Sequence[str], mode: str) -> list[str] | None:
        """Cut passages into strips; an earlier program has another name for a mode."""
        cut = self.refinement.extract_strips_from_psg
        try:
            return [strip for one in passages for strip in cut(one, mode) or cut(one, "word_num")]
        except IndexError:  # It can make no strip of fewer than ten words.
            return None

    def prepared(
        self, rows: Sequence[dict[str, Any]], lines: Mapping[str, Sequence[str]]
    ) -> list[dict[str, Any]]:
        """Run the program that joins the knowledge of `lines` for Self-CRAG, as rows of PopQA."""
        folder = self.scratch / "data" / "popqa"
        for needed in (folder / "ref", folder / "output", self.scratch / "scripts"):
            needed.mkdir(parents=True, exist_ok=True)
        _write_rows(self.scratch / "rows.jsonl", rows)
        for file, texts in lines.items():
            (folder / "ref" / file).write_text("\n".join(texts), "utf-8")
        inputs = {"popqa": str(self.scratch / "rows.jsonl")}
        with (
            chdir(self.scratch / "scripts"),
            mock.patch.object(self.preparation, "INPUT_FILES", inputs),
        ):
            run_main(
                self.preparation, ["--dataset", "popqa", "--postprocess", "--mode", "assembled"]
            )
        return list(json.loads((folder / "output" / "popqa_selfcrag.json").read_text("utf-8")))


class _Evaluator:
    """A stand-in for T5 and its tokenizer: the ids of a text are the text."""

    def __call__(self, text: Any = None, input_ids: Any = None, **_: Any) -> dict[str, Any]:
        if input_ids is None and not isinstance(text, _Text):
            return {"input_ids": _Text(text), "attention_mask": _Text()}
        return {"logits": _Logits(judged(input_ids or text))}

    def to(self, _: Any) -> "_Evaluator":
        """Return itself."""
        return self

    def eval(self) -> None:
        """Do nothing."""


class _Text(str):
    __slots__ = ()

    def to(self, _: Any) -> "_Text":
        return self


class _Logits(float):
    __slots__ = ()

    def cpu(self) -> "_Logits":
        return self
