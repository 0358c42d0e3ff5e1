"""The report of `crag evaluate` as one page of HTML, without scripts or anything to load."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from crag.asking.answer_judge import JudgeSummary
from crag.asking.evaluation import FoundDocument, Row, Summary, is_failure
from crag.state import Strip

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .2rem 1rem .2rem 0; text-align: left; }
details { border: 1px solid #8886; border-radius: .5rem; padding: .5rem 1rem; margin: .5rem 0; }
summary { cursor: pointer; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; }
.holds { outline: 2px solid #2a8; border-radius: .2rem; padding: .1rem .3rem; }
.dropped { opacity: .7; } small { opacity: .8; }
"""
_EXPLAINED = {
    "not retrieved": "no document that was found holds the answer: index it, or raise k",
    "not kept": "a document held the answer, and correction dropped it: look at its strips",
    "not sure": "the closest passages, which are shown as not sure, hold the answer",
    "not answered": "the answer was in the knowledge, and the reply does not have it",
}


def page_of(
    rows: Sequence[Row], summary: Summary, about: Mapping[str, str], judged: Mapping[str, str]
) -> str:
    """Return the page: the numbers, then every failure with what led to it.

    `about` says what was evaluated, such as the file and the method, `judged` what a judge found.
    """
    failures = [row for row in rows if is_failure(row)]
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Evaluation</title><style>{_STYLE}</style></head><body>",
        "<h1>Evaluation</h1>",
        _table(about),
        "<h2>Summary</h2>",
        _table(numbers(summary) | dict(judged)),
        f"<h2>Failures to read ({len(failures)})</h2>",
        *map(_failure, failures),
        "" if failures else "<p>There are none.</p>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def numbers(summary: Summary) -> dict[str, str]:
    """Return the lines of a summary, for people."""
    interval = summary["right_interval"]
    between = (
        f" (95 % interval {_percent(interval[0])} to {_percent(interval[1])})" if interval else ""
    )
    told = {
        "questions": str(summary["questions"]),
        "right": _percent(summary["right"]) + between,
        "verdicts": _counted(summary["verdicts"]),
        "outcomes": _counted(summary["outcomes"]),
        "actions": _counted(summary["actions"]),
        "evidence retrieved": _percent(summary["retrieved"]),
        "of it, kept": _percent(summary["kept"]),
        "unsupported sentences": _percent(summary["unsupported"]),
        "failures": _counted(summary["lost"]),
        "a question": f"{summary['seconds']:.2f} s, {summary['llm_calls']:.1f} model calls, "
        f"{summary['tokens']:,.0f} tokens",
    }
    return {name: value for name, value in told.items() if value}


def judge_numbers(summary: JudgeSummary) -> dict[str, str]:
    """Return the lines of what a judge found, for people."""
    told = {
        "judged": f"{summary['judged']} answers",
        "statements supported": _percent(summary["supported"]),
        "about the question": _percent(summary["relevant"]),
        "as a right answer": _percent(summary["agrees"]),
        "not judged": f"{summary['problems']}, by failures of the judge"
        if summary["problems"]
        else "",
    }
    return {name: value for name, value in told.items() if value}


def _judged(row: Row) -> str:
    judgement = row["judgement"]
    if judgement is None or judgement["relevant"] is None:
        return judgement["problem"] if judgement else ""
    supported = judgement["supported"]
    told = [] if supported is None else [f"supported {_percent(supported)}"]
    told.append("about the question" if judgement["relevant"] else "not about the question")
    if judgement["agrees"] is not None:
        told.append(f"{'' if judgement['agrees'] else 'not '}as a right answer")
    return ", ".join(told)


def _failure(row: Row) -> str:
    expected = "; ".join(row["answers"]) or ", ".join(row["files"])
    expected = expected if row["answerable"] else "an abstention"
    facts = {
        "expected": expected,
        "answer": row["answer"],
        "cited": ", ".join(citation["url"] for citation in row["citations"]),
        "action": row["action"],
        "thresholds": ", ".join(f"{name} {value:g}" for name, value in row["thresholds"].items()),
        "lost": f"{row['lost']}: {_EXPLAINED[row['lost']]}" if row["lost"] else "",
        "judge": _judged(row),
        "failure": row["error"],
        "events": "; ".join(f"{one['kind']}: {one['detail']}" for one in row["events"]),
    }
    documents = _list("Documents", map(_document, row["documents"]))
    strips = _list("Strips, the kept ones first", map(_strip, row["strips"]))
    heading = (
        f"<b>{escape(row['question'])}</b> <small>{escape(row['id'])}, {row['verdict']}</small>"
    )
    told = _table({name: value for name, value in facts.items() if value})
    return f"<details><summary>{heading}</summary>{told}{documents}{strips}</details>"


def _document(found: FoundDocument) -> str:
    score = "" if found["score"] is None else f"{found['score']:+.2f} "
    mark = ' class="holds"' if found["holds"] else ""
    place = escape(f"{score}{found['title']} ({found['place']})")
    return f"<li><span{mark}>{place}</span><pre>{escape(found['text'])}</pre></li>"


def _strip(strip: Strip) -> str:
    kept = "kept" if strip["kept"] else f"dropped, {strip['reason']}"
    score = "" if strip.get("score") is None else f"{strip['score']:+.2f} "
    mark = "" if strip["kept"] else ' class="dropped"'
    text = escape(strip["text"])
    return f"<li{mark}><small>{escape(score + kept)}</small><pre>{text}</pre></li>"


def _list(title: str, items: Iterable[str]) -> str:
    found = "".join(items)
    return f"<details><summary>{title}</summary><ol>{found}</ol></details>" if found else ""


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"


def _counted(counts: Mapping[str, int]) -> str:
    told = (f"{number} {name}" for name, number in counts.items())
    return ", ".join(told).replace("_", " ")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
