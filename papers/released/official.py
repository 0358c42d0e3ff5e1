"""The harness of the audit: the authors' programs, run as they are, and cases to compare with ours.

Each case asks a program, or a function of one, and ours the same for a seed. What the programs
answered is recorded for the tests, which have no checkout of them.
"""

import contextlib
import importlib
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, Self
from unittest import mock

from tqdm import tqdm

MOST_SEEDS, MOST_BYTES = 100, 3500
"""How much is recorded of each case: all seeds below the one, until the other is reached."""
_MOST_FAILURES = 20
"""A program that fails this many times as often as it is asked is given up."""


class Case(NamedTuple):
    """What is asked of a program and of ours, for a seed."""

    name: str
    runs: int
    theirs: Callable[[Any, int], Any]
    """Of the loaded programs; None where the program fails."""
    ours: Callable[[int], Any]


class Count(NamedTuple):
    """How often an official program and ours are equal."""

    what: str
    equal: int
    runs: int
    failed: int = 0
    """Runs in which the official program failed, which are not counted."""


def compare(programs: Any, cases: Sequence[Case], runs: int | None) -> Iterator[Count]:
    """Yield for each case in how many runs both answer alike; None: as many runs as it has."""
    for case in cases:
        same, failed, wanted = list[bool](), 0, runs or case.runs
        while len(same) < wanted and failed < _MOST_FAILURES * wanted:
            seed = len(same) + failed
            answer = case.theirs(programs, seed)
            if answer is None:
                failed += 1
            else:
                same.append(as_json(answer) == as_json(case.ours(seed)))
        yield Count(case.name, sum(same), len(same), failed)


def record(programs: Any, cases: Sequence[Case], path: Path) -> int:
    """Record what the programs answer to the first seeds of each case; return how many lines."""
    lines: list[str] = []
    for case in cases:
        size = 0
        for seed in range(MOST_SEEDS):
            if size < MOST_BYTES and (answer := case.theirs(programs, seed)) is not None:
                lines.append(json.dumps([case.name, seed, answer], ensure_ascii=False))
                size += len(lines[-1].encode())
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return len(lines)


def recordings(cases: Sequence[Case], path: Path) -> Iterator[tuple[Case, int, Any]]:
    """Yield each case with a seed and what was recorded for it."""
    by_name = {case.name: case for case in cases}
    for line in path.read_text("utf-8").splitlines():
        name, seed, answer = json.loads(line)
        yield by_name[name], seed, answer


def as_json(answer: Any) -> Any:
    """Return an answer as a recording gives it back: tuples are lists."""
    return json.loads(json.dumps(answer))


@contextlib.contextmanager
def program(folder: Path, name: str, stand_ins: Mapping[str, Any]) -> Iterator[ModuleType]:
    """Import the module `name` of a folder, silently; afterwards no trace of it is left.

    `stand_ins` are modules by name. The folder comes first, so that a program's own `utils` is
    found and not another one.

    Raises:
        SystemExit: the folder has no such file.
    """
    if not (folder / f"{name}.py").is_file():
        raise SystemExit(f"{folder / name}.py is not there: name the folder of the checkouts")
    # Only these names are put back: a module with compiled code cannot be loaded twice.
    names = {*stand_ins, *(path.stem for path in folder.glob("*.py"))}
    replaced = {each: sys.modules.pop(each) for each in names if each in sys.modules}
    sys.modules.update(stand_ins)
    try:
        with mock.patch.object(sys, "path", [str(folder), *sys.path]):
            importlib.invalidate_caches()
            with contextlib.redirect_stdout(io.StringIO()):
                loaded = importlib.import_module(name)
            yield loaded
    finally:
        for each in names:
            sys.modules.pop(each, None)
        sys.modules.update(replaced)


def run_main(loaded: ModuleType, arguments: Sequence[str]) -> str:
    """Call the function `main` of a program with its arguments, and return what it prints."""
    argv = mock.patch.object(sys, "argv", [loaded.__name__, *arguments])
    with argv, contextlib.redirect_stdout(io.StringIO()) as printed:
        loaded.main()
    return printed.getvalue()


def stand_in(**members: Any) -> Any:
    """Return a module that has these members and no others."""
    made = ModuleType("stand_in")
    vars(made).update(members)
    return made


def stand_ins(evaluator: object = None) -> dict[str, Any]:
    """Return what the programs import, by name; `evaluator` loads T5 and its tokenizer."""
    data = stand_in(
        **dict.fromkeys(("TensorDataset", "DataLoader", "RandomSampler", "SequentialSampler"))
    )
    torch = stand_in(
        nn=stand_in(Module=object), utils=stand_in(data=data), optim=stand_in(AdamW=None),
        cuda=stand_in(is_available=bool, manual_seed_all=id), manual_seed=id, device=str,
        no_grad=contextlib.nullcontext, backends=stand_in(cudnn=stand_in()),
    )  # fmt: skip
    transformers = stand_in(
        get_scheduler=None, T5Tokenizer=evaluator, T5ForSequenceClassification=evaluator,
        AutoTokenizer=None, AutoModelForCausalLM=None,
    )  # fmt: skip
    nothing = dict.fromkeys(("openai", "pandas", "requests", "sklearn", "spacy"), stand_in())
    return nothing | {
        "bs4": stand_in(BeautifulSoup=None), "jsonlines": stand_in(open=_JsonLines),
        "sklearn.utils": stand_in(shuffle=None), "torch": torch, "torch.nn": torch.nn,
        "torch.optim": torch.optim, "torch.utils": torch.utils, "torch.utils.data": data,
        "tqdm": stand_in(tqdm=partial(tqdm, disable=True)), "transformers": transformers,
        "vllm": stand_in(LLM=None, SamplingParams=SimpleNamespace),
    }  # fmt: skip


class _JsonLines:
    """What the programs use of the package jsonlines."""

    def __init__(self, path: str, mode: str = "r") -> None:
        self._file = open(path, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - closed at exit

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def __iter__(self) -> Iterator[Any]:
        """Return the value of each line."""
        return (json.loads(line) for line in self._file)

    def write_all(self, values: Sequence[Any]) -> None:
        """Write each value as a line."""
        self._file.writelines(f"{json.dumps(value)}\n" for value in values)
