"""`crag evaluate`: your own questions, judged, with a page of failures to read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import (
    ConcurrencyOption,
    IndexOption,
    JsonOption,
    MethodOption,
    SettingsOption,
)
from crag.cli.terminal import (
    SOME_FAILED,
    assigned,
    environment,
    print_json,
    print_table,
    progress_bar,
    safe,
    say,
)
from crag.errors import DataError

if TYPE_CHECKING:
    from crag.asking.evaluation import Row

ROWS, PAGE = "rows.jsonl", "report.html"
"""What came of each question, and the report, in the folder of both."""


@command(
    app,
    "crag evaluate questions.jsonl",
    "crag evaluate questions.jsonl --method rag --output plain",
    "crag evaluate questions.jsonl --judge gpt-4o",
    files=(ROWS, PAGE),
)
def evaluate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    questions: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines: question, with answers, or files that hold the answer, or neither."
        ),
    ],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    output: Annotated[Path, typer.Option(help="Folder of the report and of the rows.")] = Path(
        "evaluation"
    ),
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only the first ones.", show_default=False)
    ] = None,
    concurrency: ConcurrencyOption = 4,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Chat model that judges the answers: supported by what was found, about the "
            "question, as a right answer.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask your own questions, count what is right, and write a page of failures to read.

    The exit code is 1 where questions have failed.
    """
    import asyncio

    from crag.asking import evaluation
    from crag.asking.answer_judge import AnswerJudge, summarise_judgements
    from crag.asking.evaluation_page import judge_numbers, numbers, page_of
    from crag.factory.parts import choose_model, choose_parts, choose_prompts
    from crag.graph_registry import graph_named
    from crag.settings import settings_from_text

    asked = evaluation.read_questions(questions, limit)
    chosen = settings_from_text(assigned(settings))
    with _rows_of(output) as file:  # Before anything is asked, and perhaps paid for.
        place = environment(location)
        graph = graph_named(method).build(choose_parts(place, index_must_exist=True))
        judging = None
        if judge is not None:  # The server of the answering model has it too, where there is one.
            model = choose_model(place.model_copy(update={"model": judge, "framing": "chat"}))
            assert model is not None  # noqa: S101 - it has a name
            judging = AnswerJudge(model, choose_prompts(place))
        with progress_bar("asking", len(asked), quiet=as_json) as advance:
            rows = asyncio.run(
                evaluation.evaluate(graph, asked, chosen, concurrency=concurrency, progress=advance)
            )
        judged = None
        if judging is not None:
            with progress_bar("judging", len(rows), quiet=as_json) as advance:
                found = asyncio.run(judging.judge(rows, concurrency=concurrency, progress=advance))
            rows = [
                evaluation.Row(**{**row, "judgement": one})
                for row, one in zip(rows, found, strict=True)
            ]
            judged = summarise_judgements(found)
        summary = evaluation.summarise(rows)
        about = {"questions": str(questions), "method": method}
        about |= {"settings": ", ".join(settings)} if settings else {}
        about |= {"judge": judge} if judge else {}
        more: Mapping[str, str] = {} if judged is None else judge_numbers(judged)
        written = _write(output, file, rows, page_of(rows, summary, about, more))
    if as_json:
        told = {"method": method, **summary, "files": [str(file) for file in written]}
        print_json(told if judged is None else told | {"judge": judged})
    else:
        print_table((name, safe(value)) for name, value in {**numbers(summary), **more}.items())
        if summary["verdicts"].get("unjudged") == len(rows):
            say("[yellow]no question says what is right:[/] give 'answers', 'files', 'answerable'")
        say(f"report: {safe(written[0])}")
    if summary["verdicts"].get("failed"):
        raise typer.Exit(SOME_FAILED)


@contextmanager
def _rows_of(folder: Path) -> Iterator[IO[str]]:
    """Open the file of rows, which no other run can write to until the end of the block.

    Raises:
        DataError: it cannot be written to, another run does, or it holds other rows.
    """
    from crag.asking.lines import require_alone

    path = folder / ROWS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8", errors="replace")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with file:
        require_alone(path, file)
        file.seek(0)
        if '"verdict": ' not in file.readline() and file.tell():
            raise DataError(path, "holds no rows of `crag evaluate`: use another --output")
        yield file


def _write(folder: Path, file: IO[str], rows: Sequence["Row"], text: str) -> tuple[Path, Path]:
    import json

    page = folder / PAGE
    try:
        page.write_text(text, "utf-8")
        file.truncate(0)
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        file.flush()
    except OSError as error:
        raise _unwritable(folder, error) from error
    return page, folder / ROWS


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(folder, f"the report cannot be written: {error.strerror}")
