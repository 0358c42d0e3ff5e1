"""See whether a chat model returns one usable query, and one question that stands alone.

    python papers/measurements/question_prompts.py [--model NAME --url URL] [--prompts FOLDER]

The ordinary nodes ask: `rewrite` for the query of a web search, `contextualize` for a follow-up in
a chat. A query is usable if the node takes it and it names what is looked for, in at most twelve
words; a question if it names what the follow-up left out and is no longer than forty words. The
cases are below. `--prompts` puts prompts of your own in the place of ours.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from crag.generation import load_chat_model
from crag.nodes.contextualize import Contextualize
from crag.nodes.rewrite import Rewrite
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.runtime.waiting import blocking
from crag.settings import Settings
from crag.state import State

MOST_WORDS, LONGEST = 12, 40


class FollowUp(NamedTuple):
    """A conversation, the follow-up, and words that the complete question must have."""

    said: tuple[str, str]
    asked: str
    needed: tuple[str, ...]


QUERIES = (
    ("What's the default thread pool size of Starlette?", ("thread", "starlette")),
    ("How do I make two options of Click mutually exclusive?", ("click", "exclusive")),
    ("How long does Prometheus keep its data if I change nothing?", ("prometheus",)),
    ("Who is the release manager for Python 3.14?", ("python", "3.14")),
    ("How many days do the lemons infuse for limoncello?", ("limoncello",)),
    ("Can ricotta be made from milk instead of whey?", ("ricotta",)),
    ("Which tab completion shells does Click support?", ("click", "shell")),
    ("Why was http2 switched off for remote_write in Prometheus?", ("http2",)),
)
FOLLOW_UPS = (
    FollowUp(
        ("Which port does Prometheus listen on?", "It listens on port 9090 [1]."),
        "Can I change it?",
        ("port", "prometheus"),
    ),
    FollowUp(
        ("Who maintains Click?", "Click is maintained by Pallets [1]."),
        "What else do they maintain?",
        ("pallets",),
    ),
    FollowUp(
        ("How is ricotta made?", "It is made from whey [2]."),
        "And can I use milk for it?",
        ("ricotta", "milk"),
    ),
    FollowUp(
        ("What is a range vector?", "A set of time series with a range of points [1]."),
        "How does it differ from an instant vector?",
        ("range", "instant"),
    ),
    FollowUp(
        ("Does Starlette support sessions?", "Yes, by SessionMiddleware [3]."),
        "How long do they last?",
        ("session",),
    ),
    FollowUp(
        ("When was Python 3.14 released?", "In October 2025 [1]."),
        "Who was its release manager?",
        ("3.14", "release"),
    ),
    FollowUp(
        ("How long do lemons infuse for limoncello?", "For 20 days [1]."),
        "Which alcohol is used there?",
        ("limoncello", "alcohol"),
    ),
    FollowUp(
        ("How do I install Click?", "With pip install click [1]."),
        "How are basic auth passwords hashed in Prometheus?",
        ("prometheus", "hash"),
    ),
)


def main() -> None:
    """Ask, and print what came."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="local")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--prompts", type=Path)
    given = parser.parse_args()
    model = load_chat_model(given.model, base_url=given.url, timeout=1800, retries=0)
    prompts = PACKAGED if given.prompts is None else Prompts.from_folder(given.prompts)
    told("rewrite", [query(model, prompts, *case) for case in QUERIES])
    told("contextualize", [complete(model, prompts, case) for case in FOLLOW_UPS])


def query(
    model: ChatModel, prompts: Prompts, question: str, needed: Sequence[str]
) -> tuple[bool, str]:
    """Ask for the query of a question; return whether it is usable, and the query."""
    state = State(question=question)
    update = blocking(Rewrite(model, prompts).run(state, Settings()))
    text = update["query"]
    return not update["events"] and holds(text, needed, MOST_WORDS), text


def complete(model: ChatModel, prompts: Prompts, case: FollowUp) -> tuple[bool, str]:
    """Ask for the complete question of a follow-up; return whether it is usable, and it."""
    said, answer = case.said
    messages: list[AnyMessage] = [HumanMessage(said), AIMessage(answer), HumanMessage(case.asked)]
    state = State(question=case.asked, messages=messages)
    update = blocking(Contextualize(model, prompts).run(state, Settings()))
    text = update["question"]
    return not update["events"] and holds(text, case.needed, LONGEST), text


def holds(text: str, needed: Sequence[str], most: int) -> bool:
    """Say whether a text has the words, and few others."""
    return all(word in text.lower() for word in needed) and len(text.split()) <= most


def told(name: str, found: Sequence[tuple[bool, str]]) -> None:
    """Print the count, and each reply."""
    print(f"{name}: {sum(usable for usable, _ in found)} of {len(found)} usable")
    for usable, text in found:
        print(f"  {'+' if usable else '-'} {text}")


if __name__ == "__main__":
    main()
