"""Measure the speed of the evaluators side by side: start-up, growth, the embedded one, T5.

    python papers/measurements/evaluator_speed.py DATA [--t5-shape base] [--seconds 30] [--quick]
        [--default FOLDER] [--only SECTION]

DATA is a folder with evaluator/dev_bio.jsonl: questions with ten texts each. What is compared takes
turns (A, B, A, B) on two cores; each section runs in a process of its own, so that its memory is
its own. T5 has random weights, which take as long as trained ones, and a tokenizer trained on the
texts, which splits them much as T5's does.
"""

import argparse
from importlib.resources import files
from pathlib import Path

from evaluator_timing import CORES, Asked, alone, hold_to_cores

QUICK = 3.0
"""Seconds for each comparison in a hurry."""
SECTIONS = ("startup", "growth", "embedded", "t5", "gpu")


def main() -> None:
    """Run all sections and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--t5-shape", choices=("small", "base", "large"), default="base")
    parser.add_argument("--seconds", type=float, default=30, help="for each comparison")
    parser.add_argument("--default", type=Path, help="folder of the embedded evaluator")
    parser.add_argument("--only", choices=SECTIONS, nargs="+", default=SECTIONS)
    parser.add_argument("--quick", action="store_true", help="about a minute in all")
    given = parser.parse_args()
    asked = Asked(
        given.data.resolve(),
        (given.default or Path(str(files("crag.evaluators").joinpath("cross_encoder")))).resolve(),
        "small" if given.quick else given.t5_shape,
        min(given.seconds, QUICK) if given.quick else given.seconds,
        given.quick,
    )
    hold_to_cores()
    print(f"Cores: {CORES}.")
    for name in given.only:
        print(f"\n{run(name, asked)}", flush=True)


def run(name: str, asked: Asked) -> str:
    """Return the report of one section.

    This process stays small: the peak of memory of a new process is at least that of the one that
    starts it.
    """
    from evaluator_processes import growth, startup

    match name:
        case "startup":
            return startup(asked)
        case "growth":
            return growth(asked)
        case _:
            return alone(heavy, name, asked)


def heavy(name: str, asked: Asked) -> str:
    """Return the report of a section that imports torch."""
    from evaluator_embedded import embedded
    from evaluator_t5 import on_cpu, on_gpu
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return {"embedded": embedded, "t5": on_cpu, "gpu": on_gpu}[name](asked)


if __name__ == "__main__":
    main()
