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
    before = [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]
    question = with_subject(asked, before)
    return question if len(question) <= settings.max_question_characters else asked


def may_repeat_an_answer(
    state: State, settings: Settings, quotation: Quotation, strip: Strip
) -> bool:
    """Say whether a quotation may answer the question before, and not a completed follow-up.

    It does if it was quoted before, or has no word that the follow-up adds.
    """
    is_completed = any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", []))
    return is_completed and (
        _was_quoted(state, quotation) or not _names_what_was_added(state, settings, strip)
    )


def _names_what_was_added(state: State, settings: Settings, strip: Strip) -> bool:
    """Say whether a passage has a word that a follow-up such as "and in Rome?" adds.

    In the question as it was read, the words have no typing errors.
    """
    named = named_instead(state["asked"])
    typed = completed(settings.profile.split_apart(state["asked"])["question"], state, settings)
    added = {*question_words(named)} - {*words(typed.rpartition(named)[0])} if named else set()
    pairs = list(words(typed)), list(words(state["question"]))
    if len(pairs[0]) == len(pairs[1]):
        meant = dict(zip(*pairs, strict=True))
        added = {meant.get(word, word) for word in added}
    return not added or not added.isdisjoint(words(f"{strip['text']} {about(strip)}"))


def _was_quoted(state: State, quotation: Quotation) -> bool:
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    answers = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    return any(quoted in bare(text) for text in answers)
