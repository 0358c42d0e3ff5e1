"""CRAG's released programs and ours, asked the same made-up things.

Inputs have what programs stumble over in the published files. Everything is drawn by
`Random.random` alone, which alone draws the same in every Python. Recorded are the answers of
`CASES` (`RECORDED`).
"""

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, TypeVar, get_args
from unittest import mock

from langchain_core.documents import Document

from crag.correction.action import decide
from crag.correction.strips import joined, joint_text, score_of, with_title
from crag.nodes.prepare_passages import prepare_passages
from crag.papers.bench.examples import TaskName
from crag.papers.bench.runner import left_armed
from crag.papers.loading import load_examples
from crag.papers.metrics import METRICS
from crag.papers.released.official import Case, program, run_main, stand_in, stand_ins
from crag.papers.released.reflection import released_answer, released_settings
from crag.papers.settings import PaperSettings
from crag.papers.tasks import paper_format
from crag.reflection_tokens import CONTINUE, TOKENS
from crag.runtime.calls import filter_strips
from crag.state import Source, Strip, StripKind, reflected
from crag.testing import FakeEvaluator

CHECKOUT, MEASURES = "CRAG/scripts", "self-rag/retrieval_lm"
"""CRAG's eval.py imports `metrics` of Self-RAG."""
RECORDED = Path("tests/papers/released/released.jsonl")
_SCORED = {"popqa": "popqa", "pubqa": "fever", "arc_challenge": "arc_c"}
"""The folders whose answers eval.py scores, and its names of their tasks."""
_ACTIONS = ("incorrect", "ambiguous", "correct")

FOLDERS: dict[str, TaskName] = {
    "popqa": "popqa", "bio": "biography", "pubqa": "pubhealth", "arc_challenge": "arc",
}  # fmt: skip
"""The folders of ``data``, which are the official names of the tasks, and ours."""
THRESHOLDS = ((0.592, -0.995), (0.5, -0.915), (0.95, -0.91), (0.3, -0.3))
"""Upper and lower ones; the first three are the published ones."""
NAMES = ("Ada", "Bo Li", "Cleo", "D. E. Fay", "Gus (actor)", "Who Is", "Émile", "Zoë Ω")
_WORDS = (
    "river", "stone", "a", "of", "it", "A:", "No.", "B:", "7", "naïve", "blue", "engine", "[1]",
    "knowledge", "in", "<ref", "Ada", "wrote", "notes", "true", "//", "$5", "&amp;",
)  # fmt: skip
_ENDS = (". ", ". ", ". ", "? ", "?", ".", "! ", ".  ", ". ? ", "; ")
_ODD = ("</s>", "<|endoftext|>", "\n", "\n\n", " ", "  ", "SUPPORTS", "REFUTES", "true", "C", "7")


_Kind = TypeVar("_Kind")


def drawing(seed: int | str) -> Random:
    """Return what draws for a seed."""
    return Random(seed)  # noqa: S311 - made-up data


def one_of(draw: Random, choices: Sequence[_Kind]) -> _Kind:
    """Draw one."""
    return choices[int(draw.random() * len(choices))]


def up_to(draw: Random, most: int) -> int:
    """Draw a number from 1 to `most`."""
    return 1 + int(draw.random() * most)


def chance(draw: Random, share: float) -> bool:
    """Return true in this share of draws."""
    return draw.random() < share


def words_of(draw: Random, most: int) -> str:
    """Draw 1 to `most` words."""
    return " ".join(one_of(draw, _WORDS) for _ in range(up_to(draw, most)))


def passage_of(draw: Random) -> str:
    """Draw a passage of up to nine sentences, some of them twice, without spaces around it."""
    sentences: list[str] = []
    for _ in range(up_to(draw, 9)):
        repeats = sentences and chance(draw, 0.1)
        sentences.append(one_of(draw, sentences) if repeats else words_of(draw, 14))
    return "".join(sentence + one_of(draw, _ENDS) for sentence in sentences).strip()


def reply_of(draw: Random) -> str:
    """Draw what a generator with reflection tokens may write."""
    pieces = (*TOKENS, *_ODD, CONTINUE, "[Utility:", "5]")
    return "".join(
        one_of(draw, pieces) if chance(draw, 0.4) else f"{words_of(draw, 3)} "
        for _ in range(up_to(draw, 8))
    )


def row_of(draw: Random, folder: str, place: int) -> dict[str, Any]:
    """Draw a row of the file that the data in `folder` is made of."""
    name = NAMES[place]
    row: dict[str, Any] = {
        "id": place,
        "question": _question(draw, folder, place),
        "ctxs": [
            {"title": name, "text": f"{_mark(place)} {words_of(draw, 4)}\n{words_of(draw, 4)}"}
            for _ in range(up_to(draw, 3))
        ],
    }
    match folder:
        case "popqa":
            answers = list({words_of(draw, 2) for _ in range(up_to(draw, 3))})
            return row | {"answers": sorted(answers), "s_wiki_title": name}
        case "pubqa":
            return row | {"answers": [one_of(draw, ("true", "false"))]}
        case _:
            labels = list(one_of(draw, ("ABCD", "ABCD", "1234", "ABC", "ABCDE")))
            options = {"label": labels, "text": [words_of(draw, 3) for _ in labels]}
            return row | {"choices": options, "answerKey": one_of(draw, labels)}


def _question(draw: Random, folder: str, place: int) -> str:
    return f"Who is {NAMES[place]}?" if folder == "bio" else f"{_mark(place)} {words_of(draw, 8)}"


def _mark(place: int) -> str:
    """Return words that a question shares with its own passages alone."""
    return f"{NAMES[place]} wing{place}"


def judged(text: str) -> float:
    """Return the score that the stand-in for the evaluator gives, often one of few."""
    number = zlib.crc32(text.encode())
    return (number % 21 - 10) / 10 if number % 3 else (number % 1000) / 500 - 1


def evaluator(upper: float = 0.5, lower: float = -0.5) -> FakeEvaluator:
    """Return ours, which scores as `judged` does."""
    return FakeEvaluator(lambda asked, text: judged(joined(asked, text)), upper=upper, lower=lower)


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


def _retrieved(seed: int) -> tuple[str, list[tuple[str, str]]]:
    """Draw a question, and passages of which all or none have a title."""
    draw = drawing(seed)
    title = one_of(draw, ("", one_of(draw, NAMES)))
    return words_of(draw, 6), [(title, passage_of(draw)) for _ in range(up_to(draw, 10))]


def _their_refinement(programs: "Released", seed: int) -> str:
    question, passages = _retrieved(seed)
    out = programs.scratch / "correct"
    texts = [with_title(*passage) for passage in passages]
    refine = programs.refinement.knowledge_refinement
    refine([texts], [question], str(out), "evaluator", "cpu", "selection")
    return out.read_text("utf-8").removeprefix("#")


def _our_refinement(seed: int) -> str:
    """Keep the three best passages, whole, as the published files do."""
    settings = PaperSettings(strips_kept=3, strip_threshold=None, titles="passage")
    question, passages = _retrieved(seed)
    strips = [_strip(with_title(*passage), "document", passage[0]) for passage in passages]
    return _best(question, strips, settings)


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
        passages = reflected(prepare_passages(state, settings, prepared=True))["passages"]
        offered.append([[one["title"], one["text"]] for one in passages])
    return offered


CASES = (
    Case("action", 20_000, _their_action, lambda seed: decide(*_scores(seed))),
    Case("refinement, selection", 400, _their_refinement, _our_refinement),
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
