"""Follow-up questions of a chat that a rule completed, since no model wrote them anew."""

from langchain_core.messages import AIMessage, HumanMessage

from crag.correction.naming import about
from crag.parts import Quotation
from crag.settings import Settings
from crag.state import State, Strip, spoken
from crag.text.words import bare, question_words, words
from crag.wording import named_instead, with_subject

WITH_SUBJECT = "complete it by the question that it follows"
"""The fallback of an event after which a rule has completed the question."""


def completed(asked: str, state: State, settings: Settings) -> str:
    """Return a follow-up completed by the question before, where it leans on that, by a rule."""
    question = with_subject(asked, _earlier(state))
    return question if len(question) <= settings.max_question_characters else asked


def may_repeat_an_answer(state: State, quotation: Quotation, strip: Strip) -> bool:
    """Say whether a quotation may answer the question before, and not a completed follow-up.

    It does if it was quoted before, or has no word that a follow-up such as "and in Rome?" adds.
    """
    if not any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", [])):
        return False
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    answers = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    if any(quoted in bare(text) for text in answers):
        return True
    named = named_instead(state["asked"])
    added = {*question_words(named)} - {*words(" ".join(_earlier(state)))} if named else set()
    added &= {*words(state["question"])}  # Others had a typing error.
    return bool(added) and added.isdisjoint(words(f"{strip['text']} {about(strip)}"))


def _earlier(state: State) -> list[str]:
    return [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]
