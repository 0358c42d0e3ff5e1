"""`crag evaluate`: your own questions, judged, with a page of failures to read."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from crag.asking.answer_judge import AnswerJudge, summarise_judgements
from crag.asking.evaluation import Row, evaluate, read_questions, summarise
from crag.asking.evaluation_page import judge_numbers, numbers, page_of
from crag.cli.terminal import assigned, environment, plain_table, print_json, progress_bar
from crag.errors import DataError
from crag.factory import choose_model, choose_parts, choose_prompts
from crag.graph_registry import graph_named
from crag.parts import ChatModel
from crag.runtime.environment import Environment
from crag.settings import settings_from_text


def run(  # noqa: PLR0913 - the options of the command
    path: Path,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    output: Path,
    *,
    limit: int | None,
    concurrency: int,
    judge: str | None,
    as_json: bool,
) -> None:
    """Ask every question, write rows and report into `output`, and print the summary.

    `judge` names a chat model that judges the answers.
    """
    questions = read_questions(path, limit)
    chosen = settings_from_text(assigned(assignments))
    place = environment(location)
    graph = graph_named(method).build(choose_parts(place, index_must_exist=True))
    judging = None if judge is None else AnswerJudge(_model(place, judge), choose_prompts(place))
    with progress_bar("asking", quiet=as_json) as advance:
        rows = asyncio.run(
            evaluate(
                graph,
                questions,
                chosen,
                concurrency=concurrency,
                progress=lambda done: advance(done, len(questions), "asking"),
            )
        )
    judged = None
    if judging is not None:
        with progress_bar("judging", quiet=as_json) as advance:
            found = asyncio.run(
                judging.judge(
                    rows,
                    concurrency=concurrency,
                    progress=lambda done: advance(done, len(rows), "judging"),
                )
            )
        rows = [Row(**{**row, "judgement": one}) for row, one in zip(rows, found, strict=True)]
        judged = summarise_judgements(found)
    summary = summarise(rows)
    about = {"questions": str(path), "method": method, "settings": ", ".join(assignments)}
    about |= {"judge": judge or ""}
    more = {} if judged is None else judge_numbers(judged)
    page = page_of(rows, summary, {name: one for name, one in about.items() if one}, more)
    written = _write(output, rows, page)
    if as_json:
        told = {"method": method, **summary, "files": [str(file) for file in written]}
        print_json(told if judged is None else told | {"judge": judged})
        return
    table = plain_table(show_header=False)
    for name, value in (numbers(summary) | more).items():
        table.add_row(name, escape(value))
    console = Console(highlight=False)
    console.print(table)
    console.print(f"report: {escape(str(written[0]))}", soft_wrap=True)


def _model(place: Environment, name: str) -> ChatModel:
    """Return the judge, which the server of the answering model has too where there is one."""
    model = choose_model(place.model_copy(update={"model": name, "framing": "chat"}))
    assert model is not None  # noqa: S101 - it has a name
    return model


def _write(folder: Path, rows: Sequence[Row], text: str) -> tuple[Path, Path]:
    page, lines = folder / "report.html", folder / "rows.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(text, "utf-8")
        with lines.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except OSError as error:
        raise DataError(folder, f"the report cannot be written: {error.strerror}") from error
    return page, lines
