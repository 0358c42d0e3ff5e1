"""How a question is asked and answered: what the papers' tasks change, in one profile.

Nodes and reflection read the profile of the settings; none of them knows a task by its name. The
product has one; those of the papers are in `crag.papers.tasks`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crag.wording import plainly_asked, question_in

FindBy = Literal["both", "meaning", "words"]
"""How an index finds documents for a question: by words and by meaning, or by one of them."""


@dataclass(frozen=True, kw_only=True)
class TaskProfile:
    """How questions are asked and answered."""

    cites: bool = True
    """Whether answers refer to strips by number."""
    chats: bool = True
    """Whether thanks, greetings and the like are replied to, and not searched for."""
    closed: bool = False
    """Whether the answer is one of a few labels."""
    answer_prompt: str = "answer_default"
    correct_prompt: str = "answer_correct"
    """Asked in its place where the action is Correct, if attribution finds the citations that it
    does not ask for; it leaves no way to decline. Empty: none."""
    own_prompt: str = "answer_own_knowledge"
    """Asked where there is no knowledge; it states the task as `answer_prompt` does."""
    rewrite_prompt: str = "rewrite_turns"
    knowledge: Callable[[Mapping[str, Any]], str] | None = None
    """Writes the knowledge of a state for the prompts; None: as numbered passages."""
    query: Callable[[str], str] | None = None
    """Makes the web query of a question instead of a model; None: `rewrite_prompt` asks one."""

    def split_apart(self, asked: str) -> tuple[str, dict[str, str]]:
        """Return what is retrieved for and judged, and options, which only the generator sees.

        Courtesies, and what else a long message says, are split off: see `crag.wording`. Options
        are by their labels as they were written; only tasks of the papers have any.
        """
        return plainly_asked(question_in(asked)), {}

    def instruction_for(self, question: str, options: Mapping[str, str] | None = None) -> str:
        """Return the instruction field of Self-RAG's prompt for a question."""
        del options
        return question

    def values(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return what fills the other placeholders of its prompts."""
        del options
        return {}


DEFAULT = TaskProfile()
