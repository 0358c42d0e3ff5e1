"""CRAG's released programs and ours, asked the same made-up things.

Each case is a program or a function of one, and each seed of a case another input. What the
programs answered is recorded for the tests, which have no checkout of them (`RECORDED`); prompts
are not, since their wording is the authors'.
"""

import contextlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, NamedTuple, get_args
from unittest import mock

from langchain_core.documents import Document

from crag.answering.context import paper_format
from crag.correction.action import decide
from crag.correction.scoring import with_title
from crag.correction.strips import as_split, decompose, joint_text
from crag.nodes.prepare_passages import PreparePassages
from crag.nodes.refine import Refine
from crag.papers.bench.armed import left_armed
from crag.papers.bench.examples import Example
from crag.papers.loading import crag_pairs
from crag.papers.loading.crag import read as read_folder
from crag.papers.loading.published_json import read_self_rag
from crag.papers.metrics.matching import MATCH
from crag.papers.released import official_inference
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
from crag.papers.released.official_inference import RUNS
from crag.papers.released.official_program import Count, JsonLines, program, run_main, stand_in
from crag.papers.released.reflection import released_answer, released_settings
from crag.papers.settings import PaperSettings
from crag.papers.tasks import profile_of
from crag.runtime.evaluator_calls import filter_strips
from crag.settings import Decomposition
from crag.state import Source, Strip, StripKind

CHECKOUT, METRICS = "CRAG/scripts", "self-rag/retrieval_lm"
"""CRAG's eval.py imports `metrics` of Self-RAG."""
RECORDED = Path("tests/papers/released/released.jsonl")
MOST_SEEDS, MOST_BYTES = 100, 3500
"""How much is recorded of each case: all seeds below the one, until the other is reached."""
KEPT: Mapping[Decomposition, int] = {"selection": 3, "excerption": 6, "fixed_num": 6}
"""How many strips the released refinement keeps."""


class Case(NamedTuple):
    """What is asked of a program and of ours, for a seed."""

    name: str
    runs: int
    theirs: Callable[["Released", int], Any]
    ours: Callable[[int], Any]


def _scores(seed: int) -> tuple[list[float], float, float]:
    draw = drawing(seed)
    upper, lower = one_of(draw, THRESHOLDS)
    down = one_of(draw, (0.0, 0.0, 1.0, 3.0))
    drawn = [draw.random() * 2 - 1 - down for _ in range(up_to(draw, 10))]
    return (
        [one_of(draw, (upper, lower, -1.0)) if chance(draw, 0.1) else one for one in drawn],
        upper,
        lower,
    )


def _their_action(programs: "Released", seed: int) -> str:
    scores, upper, lower = _scores(seed)
    (flag,) = programs.inference.process_flag(scores, len(scores), upper, lower)
    return ("incorrect", "ambiguous", "correct")[flag]


def _passages(seed: int) -> list[str]:
    draw = drawing(seed)
    return [passage_of(draw) for _ in range(up_to(draw, 4))]


def _their_strips(mode: str) -> Callable[["Released", int], list[str]]:
    return lambda programs, seed: [
        strip for passage in _passages(seed) for strip in programs.cut(passage, mode)
    ]


def _our_strips(mode: Decomposition) -> Callable[[int], list[str]]:
    return lambda seed: [strip for text in _passages(seed) for strip in decompose(text, mode)]


def _their_spaced_strips(programs: "Released", seed: int) -> list[str]:
    """Cut passages as the program does that reads them from a line, with the spaces around them."""
    line = " [sep] ".join(_passages(seed)).strip()
    return [strip for text in line.split("[sep]") for strip in programs.cut(text, "fixed_num")]


def _our_spaced_strips(seed: int) -> list[str]:
    given = _passages(seed)
    spaced = (as_split(text, place, len(given)) for place, text in enumerate(given))
    return [strip for text in spaced for strip in decompose(text, "fixed_num_spaced")]


def _retrieved(seed: int) -> tuple[str, list[tuple[str, str]]]:
    """Draw a question, and passages of which all or none have a title."""
    draw = drawing(seed)
    title = one_of(draw, ("", one_of(draw, NAMES)))
    return words_of(draw, 6), [(title, passage_of(draw)) for _ in range(up_to(draw, 10))]


def _their_refinement(mode: str) -> Callable[["Released", int], str]:
    def refined(programs: "Released", seed: int) -> str:
        question, passages = _retrieved(seed)
        out = programs.scratch / "correct"
        texts = [with_title(*passage) for passage in passages]
        refine = programs.refinement.knowledge_refinement
        refine([texts], [question], str(out), "evaluator", "cpu", mode)
        return out.read_text("utf-8").removeprefix("#")

    return refined


def _our_refinement(mode: Decomposition) -> Callable[[int], str]:
    settings = PaperSettings(
        task="popqa", decomposition=mode, strips_kept=KEPT[mode], strip_threshold=None,
        strip_order="score", strip_scores="alone", titles="passage",
    )  # fmt: skip

    def refined(seed: int) -> str:
        question, passages = _retrieved(seed)
        documents = [Document(text, metadata={"title": title}) for title, text in passages]
        state: Any = {"question": question, "documents": documents}
        with left_armed():
            return paper_format(Refine(evaluator()).run(state, settings), settings)  # type: ignore[arg-type]

    return refined


def _paragraphs(seed: int) -> list[str]:
    """Draw paragraphs of web pages, as both programs write them before they are scored."""
    draw = drawing(seed)
    return [f"{one_of(draw, NAMES)}: {words_of(draw, 6)}" for _ in range(up_to(draw, 30))]


def _their_selection(programs: "Released", seed: int) -> str:
    select = programs.refinement.select_relevants
    return str(select(_paragraphs(seed), "Who?", _Evaluator(), _Evaluator(), "cpu", top_n=5)[0])


def _our_selection(seed: int) -> str:
    settings = PaperSettings(
        strips_kept=5, strip_threshold=None, strip_order="score", titles="none"
    )
    strips = [_strip(text, "web") for text in _paragraphs(seed)]
    with left_armed():
        kept = filter_strips(evaluator(), "Who?", strips, settings, node="select").found
        return paper_format({"strips": kept}, settings)


def _strip(text: str, kind: StripKind) -> Strip:
    source = Source(id="", title="", url="", position="")
    return Strip(text=text, kind=kind, source=source, score=None, kept=True, reason="")


def _their_answer(programs: "Released", seed: int) -> str:
    return str(programs.inference.postprocess_answer_option_conditioned(reply_of(drawing(seed))))


def _our_answer(seed: int) -> str:
    return released_answer(reply_of(drawing(seed)))


_SCORED = {"popqa": "popqa", "pubqa": "fever", "arc_challenge": "arc_c"}
"""The folders whose answers eval.py scores, and its names of their tasks."""


def _rows(seed: int, names: Sequence[str]) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Draw rows of one task, and a reply to each."""
    draw = drawing(seed)
    name = one_of(draw, names)
    rows = [row_of(draw, name, place) for place in range(6)]
    return name, rows, [reply_of(draw).replace("\n", " ").strip() for _ in rows]


def _their_mean(programs: "Released", seed: int) -> str:
    name, rows, replies = _rows(seed, tuple(_SCORED))
    asked, answered = programs.scratch / "asked.jsonl", programs.scratch / "answered"
    _write_rows(asked, rows)
    answered.write_text("".join(f"{reply}\n" for reply in replies), "utf-8")
    printed = run_main(programs.scoring, [
        "--input_file", str(asked), "--eval_file", str(answered), "--metric", "match",
        "--task", _SCORED[name],
    ])  # fmt: skip
    return f"{float(printed.split()[-1]):.3f}"


def _our_mean(seed: int) -> str:
    name, rows, replies = _rows(seed, tuple(_SCORED))
    found = [
        MATCH.compute(example, {"answer": reply, "status": "answered"})
        for example, reply in zip(_read_rows(name, rows), replies, strict=True)
    ]
    return f"{sum(filter(None, found)) / len(found):.3f}"


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _read_rows(name: str, rows: Sequence[dict[str, Any]]) -> list[Example]:
    with TemporaryDirectory() as place:
        _write_rows(Path(place) / "asked.jsonl", rows)
        return read_self_rag(Path(place) / "asked.jsonl", FOLDERS[name]).examples


def _their_folder(programs: "Released", seed: int) -> list[Any]:
    """Prepare the data as the program does, and read what it wrote."""
    name, rows, _ = _rows(seed, tuple(FOLDERS))
    folder = programs.prepared(name, rows)
    (folder / {"pubqa": "test_pubqa.txt"}.get(name, f"test_{name}.txt")).unlink()
    return [_seen(one, name) for one in read_folder(folder, FOLDERS[name]).examples]


def _our_folder(seed: int) -> list[Any]:
    name, rows, _ = _rows(seed, tuple(FOLDERS))
    return [_seen(one, name) for one in _read_rows(name, rows)]


def _seen(example: Example, name: str) -> list[Any]:
    """Return the question as in `sources`, the passages, PopQA's without title, and the options."""
    titled = name != "popqa"
    texts = [
        [one.metadata["title"] if titled else "", one.page_content.replace("\n", " ")]
        for one in example.documents
    ]
    topic = example.extra.get("topic")
    question = f"Who is {topic}?" if topic else example.question
    return [question, texts, list(map(list, example.choices))]


def _pairs(seed: int) -> str:
    draw = drawing(seed)
    questions = [words_of(draw, 6) for _ in range(3)]
    if chance(draw, 0.2):
        questions[1] = questions[0]
    return "\n".join(
        f"{question} [SEP] {'' if chance(draw, 0.1) else words_of(draw, 6)}"
        for question in questions
        for _ in range(3)
    )


def _their_pairs(programs: "Released", seed: int) -> list[list[str]]:
    path, read = programs.scratch / "pairs.txt", programs.inference.data_preprocess
    path.write_text(_pairs(seed), "utf-8")
    most = [10] if len(inspect.signature(read).parameters) > 1 else []
    questions, passages = read(str(path), *most)
    # Ours has no passage where there is no text.
    texts = ([one for one in line.split(" [sep] ") if one] for line in passages)
    return [[question, *some] for question, some in zip(questions, texts, strict=True)]


def _our_pairs(seed: int) -> list[list[str]]:
    with TemporaryDirectory() as place:
        path = Path(place) / "pairs.txt"
        path.write_text(_pairs(seed), "utf-8")
        examples = crag_pairs.read(path, "popqa").examples
    return [[one.question, *(text.page_content for text in one.documents)] for one in examples]


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
    folder = programs.prepared("popqa", rows, lines)
    offered = json.loads((folder / "output" / "popqa_selfcrag.json").read_text("utf-8"))
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


def _their_queries(programs: "Released", seed: int) -> list[str]:
    asked = [f"Who is {name}?" for name in (NAMES[seed % 8], words_of(drawing(seed), 4))]
    found: list[str] = programs.search.generate_knowledge_q(asked, "bio", None, "all")
    return found


def _our_queries(seed: int) -> list[str]:
    query = profile_of("biography").query
    assert query is not None
    return [query(f"Who is {name}?") for name in (NAMES[seed % 8], words_of(drawing(seed), 4))]


CASES = (
    Case("action", 20_000, _their_action, lambda seed: decide(*_scores(seed))),
    Case("excerption", 10_000, _their_strips("excerption"), _our_strips("excerption")),
    Case(
        "fixed_num, stripped passages", 5000, _their_strips("fixed_num"), _our_strips("fixed_num")
    ),
    Case("fixed_num, passages as read", 5000, _their_spaced_strips, _our_spaced_strips),
    *(
        Case(f"refinement, {mode}", 400, _their_refinement(mode), _our_refinement(mode))
        for mode in KEPT
    ),
    Case("selection from the web", 400, _their_selection, _our_selection),
    Case("queries, bio", 400, _their_queries, _our_queries),
    Case("answers", 10_000, _their_answer, _our_answer),
    Case("scores of answers", 1000, _their_mean, _our_mean),
    Case("prepared data", 400, _their_folder, _our_folder),
    Case("pairs of question and passage", 1000, _their_pairs, _our_pairs),
    Case("Self-CRAG's passages, assembled", 200, _their_passages, _our_passages),
)


def compare(folder: Path, runs: int | None) -> Iterator[Count]:
    """Yield for each case in how many runs both answer alike."""
    with released(folder) as programs:
        for case in CASES:
            same, wanted = list[bool](), runs or case.runs
            seed = 0
            for seed in count():
                if len(same) == wanted:
                    break
                if (answer := programs.answer(case, seed)) is not None:
                    same.append(answer == case.ours(seed))
            yield Count(case.name, sum(same), wanted, seed - wanted)
        yield from official_inference.compare(programs.inference, programs.scratch, runs or RUNS)


@contextlib.contextmanager
def released(official: Path) -> Iterator["Released"]:
    """Load the programs from the folder of the checkouts."""
    folder, stand_ins = official / CHECKOUT, _stand_ins()
    with contextlib.ExitStack() as opened:

        def load(name: str) -> ModuleType:
            return opened.enter_context(program(folder, name, stand_ins))

        inference = load("CRAG_Inference")
        metrics = opened.enter_context(program(official / METRICS, "metrics", {}))
        stand_ins["metrics"] = metrics
        scratch = opened.enter_context(TemporaryDirectory())
        yield Released(
            inference, load("internal_knowledge_preparation"),
            load("external_knowledge_preparation"), load("data_process"), load("eval"),
            Path(scratch),
        )  # fmt: skip


class Released(NamedTuple):
    """The programs, ready to be asked."""

    inference: Any
    refinement: Any
    search: Any
    preparation: Any
    scoring: Any
    scratch: Path

    def answer(self, case: Case, seed: int) -> Any:
        """Return what a program answers; None where it fails."""
        try:
            return case.theirs(self, seed)
        except IndexError:  # It can make no strip of fewer than ten words.
            return None

    def cut(self, passage: str, mode: str) -> list[str]:
        """Cut a passage into strips; an earlier program has another name for a mode."""
        cut = self.refinement.extract_strips_from_psg
        strips: list[str] | None = cut(passage, mode)
        return cut(passage, "word_num") if strips is None else strips

    def prepared(
        self,
        name: str,
        rows: Sequence[dict[str, Any]],
        lines: Mapping[str, Sequence[str]] | None = None,
    ) -> Path:
        """Run the program that prepares data, with the knowledge that it joins for Self-CRAG."""
        folder = self.scratch / "data" / name
        for needed in (folder / "ref", folder / "output", self.scratch / "scripts"):
            needed.mkdir(parents=True, exist_ok=True)
        _write_rows(self.scratch / "rows.jsonl", rows)
        for file in ("correct", "incorrect", "ambiguous"):
            (folder / "ref" / file).unlink(missing_ok=True)
        for file, texts in (lines or {}).items():
            (folder / "ref" / file).write_text("\n".join(texts), "utf-8")
        joins = ["--postprocess", "--mode", "assembled"] if lines else []
        inputs = {name: str(self.scratch / "rows.jsonl")}
        with (
            chdir(self.scratch / "scripts"),
            mock.patch.object(self.preparation, "INPUT_FILES", inputs),
        ):
            run_main(self.preparation, ["--dataset", name, *joins])
        return folder


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


class _Progress:
    """What the programs use of the package tqdm."""

    def __init__(self, values: Any, **_: Any) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def update(self, _: int) -> None:
        """Do nothing."""


def _stand_ins() -> dict[str, Any]:
    nothing = stand_in()
    data = stand_in(
        **dict.fromkeys(("TensorDataset", "DataLoader", "RandomSampler", "SequentialSampler"))
    )
    torch = stand_in(
        nn=stand_in(Module=object), utils=stand_in(data=data), optim=stand_in(AdamW=None),
        cuda=stand_in(is_available=bool), device=str, no_grad=contextlib.nullcontext,
    )  # fmt: skip
    evaluator = stand_in(from_pretrained=lambda *_, **__: _Evaluator())
    transformers = stand_in(
        get_scheduler=None, T5Tokenizer=evaluator, T5ForSequenceClassification=evaluator,
        AutoTokenizer=None, AutoModelForCausalLM=None,
    )  # fmt: skip
    return {
        "torch": torch, "torch.nn": torch.nn, "torch.utils": torch.utils, "torch.utils.data": data,
        "torch.optim": torch.optim, "sklearn": nothing, "sklearn.utils": stand_in(shuffle=None),
        "pandas": nothing, "tqdm": stand_in(tqdm=_Progress), "transformers": transformers,
        "vllm": stand_in(LLM=None, SamplingParams=dict), "openai": nothing, "requests": nothing,
        "bs4": stand_in(BeautifulSoup=None), "jsonlines": stand_in(open=JsonLines),
    }  # fmt: skip


@cache
def _cases() -> dict[str, Case]:
    return {case.name: case for case in CASES}


def recordings() -> Iterator[tuple[Case, int, Any]]:
    """Return each case with a seed and what was recorded for it."""
    for line in RECORDED.read_text("utf-8").splitlines():
        name, seed, answer = json.loads(line)
        yield _cases()[name], seed, answer


def record(official: Path) -> int:
    """Record what the programs answer to the first seeds of each case; return how many lines."""
    lines: list[str] = []
    with released(official) as programs:
        for case in CASES:
            size = 0
            for seed in range(MOST_SEEDS):
                if size < MOST_BYTES and (answer := programs.answer(case, seed)) is not None:
                    lines.append(json.dumps([case.name, seed, answer], ensure_ascii=False))
                    size += len(lines[-1].encode())
    RECORDED.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return len(lines)
