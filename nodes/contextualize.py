"""Make a follow-up question self-contained."""

import re
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, HumanMessage

from crag.answering.model_calls import Reply, aask, ask
from crag.answering.outcome import WITH_SUBJECT, completed
from crag.correction.queries import without_chatter
from crag.events import Event, EventKind, event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Usage, spoken
from crag.text.untrusted import neutral

_MARK = re.compile("[?？؟\u037e]")
"""Question marks; the last one is the Greek one."""
_AROUND = ' "“”„«»*_`{}'
_AS_ASKED = "use the question as it was asked"
_LONGEST_MESSAGE = 1000
"""Characters of each earlier message that the model reads."""
HISTORY = 6
"""Earlier messages that it reads."""


@dataclass(frozen=True)
class Contextualize:
    """Make a follow-up question in a chat self-contained, with one model call.

    `question` becomes the self-contained question, which retrieval, grading and the answer use;
    `asked` keeps the original. Where no model can write it, one that leans on the question before
    is completed by it. The node runs only if there is a history.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED

    def run(self, state: State, settings: Settings) -> State:
        """Write the self-contained question."""
        reply = ask(self.model, self._prompt(state)) if self.model else None
        return _concluded(state, settings, reply)

    async def arun(self, state: State, settings: Settings) -> State:
        """Do the same, awaiting the model."""
        reply = await aask(self.model, self._prompt(state)) if self.model else None
        return _concluded(state, settings, reply)

    def _prompt(self, state: State) -> list[AnyMessage]:
        said = [one for one in spoken(state)[:-1] if one.text][-HISTORY:]
        lines = [
            f"{'user' if isinstance(message, HumanMessage) else 'assistant'}: "
            f"{neutral(' '.join(message.text.split())[:_LONGEST_MESSAGE])}"
            for message in said
        ]
        question = neutral(state["question"])
        return self.prompts.render("contextualize", question=question, history="\n".join(lines))


def _concluded(state: State, settings: Settings, reply: Reply | None) -> State:
    """Take the model's question; where there is none, complete what was asked by a rule.

    Small models answer instead of asking.
    """
    asked = state["question"]
    events, said = list[Event](), " ".join(one.text for one in spoken(state))
    written = without_chatter(reply.text, said) if reply else ""
    question = " ".join(written.split()).strip(_AROUND)
    is_question = _MARK.search(question) is not None or _MARK.search(asked) is None
    is_usable = question and is_question and len(question) <= settings.max_question_characters
    kind: EventKind = "contextualize_failed" if reply else "contextualize_skipped"
    problem: object = ""
    if reply is None:
        problem = "no chat model is configured to complete questions"
    elif reply.problem is not None:
        problem = reply.detail
    elif not is_usable:
        problem = f"the model's reply is not a question: {reply.text[:80]!r}"
    if problem:
        question = completed(asked, state, settings)
        fallback = _AS_ASKED if question == asked else WITH_SUBJECT
        events = [event(kind, "contextualize", problem, fallback)]
    usage = reply.usage if reply else Usage()
    question = settings.profile.split_apart(question)[0]
    return State(question=question, events=events, usage=usage)
