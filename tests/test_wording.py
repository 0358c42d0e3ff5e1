"""The question in what people write around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.wording import civil_reply, plainly_asked, with_subject


@pytest.mark.parametrize(
    ("asked", "plain"),
    [
        ("Could you tell me how many days it lasts?", "How many days it lasts?"),
        ("In the documentation: how do I mount files?", "How do I mount files?"),
        ("Hi, please tell me what a strip is, thanks!", "What a strip is"),
        ("hi how do i send json pls", "how do i send json"),
        ("I was wondering whether it supports HTTP/2", "It supports HTTP/2"),
        ("Which port is it? Thank you very much", "Which port is it?"),
        ("According to the handbook, can I donate leave?", "Can I donate leave?"),
        ("question: how big is it?", "how big is it?"),
        ("does anyone know if click is async", "click is async"),
        ("That was helpful, thanks! How long is leave?", "How long is leave?"),
        ("ok thanks, and how is it paid?", "and how is it paid?"),
    ],
)
def test_courtesies_go(asked: str, plain: str) -> None:
    assert plainly_asked(asked) == plain


@pytest.mark.parametrize(
    "asked",
    [
        "Can you rotate the key without logging out?", "Question marks in URLs: how?",
        "What does Hi mean?", "How do I say thanks in a template?", "Please", "Thanks", "Hello",
        "What is in the documentation?", "Fine-tuning of models", "super().__init__ in classes",
        "Cool temperatures in winter", "", "  ", "?", "Hi there", "Does it tell me the time?",
    ],
)  # fmt: skip
def test_any_other_question_stays_as_it_is(asked: str) -> None:
    assert plainly_asked(asked) == asked


@given(st.text(max_size=80))
def test_what_is_left_is_part_of_the_question(asked: str) -> None:
    plain = plainly_asked(asked)
    assert plain == asked or plain.rstrip("?").lower() in asked.lower()
    assert bool(plain.strip()) == bool(asked.strip())


@pytest.mark.parametrize(
    ("question", "before", "whole"),
    [
        ("And per request?", ["How is a timeout set?"], "How is a timeout set? And per request?"),
        ("where is she", ["Who is Ada?", "and who is Bob?"], "Who is Ada? where is she"),
        ("Is it fast?", ["Please tell me, what is HTTP/2?"], "What is HTTP/2? Is it fast?"),
        ("How do I install Flask?", ["How do I set a timeout?"], "How do I install Flask?"),
        ("And then?", ["And now?"], "And then?"),
        ("What about it?", [], "What about it?"),
        ("no, I meant here", ["When does it end?", "Is a VPN slow?"],
         "Is a VPN slow? no, I meant here"),
        ("Thanks! And in Rome?", ["What may a hotel cost?"], "What may a hotel cost? And in Rome?"),
        ("in German?", ["How is it set?", "Is a file read?"], "Is a file read? in German?"),
        ("How long?", ["Is sick leave paid?"], "Is sick leave paid? How long?"),
        ("And in Rome?", ["May I fly?", "Ok, thanks!", "hi"], "May I fly? And in Rome?"),
        ("what about sick leave?", ["How much parental leave is paid?", "And annual leave?"],
         "How much sick leave is paid?"),
        ("And the upper threshold?", ["What is the lower threshold?"],
         "What is the upper threshold?"),
        ("And the retries?", ["What is the timeout?"], "What is the timeout? And the retries?"),
        ("and in Rome?", ["What may a hotel in Munich cost?"], "What may a hotel in Rome cost?"),
        ("and for flights?", ["What do I ask for before a trip?"],
         "What do I ask for before a trip? and for flights?"),
        ("how about Windows", ["Where is the file on Linux?"], "Where is the file on Windows?"),
        ("what about green pea protein?", ["What is the footprint of yellow pea protein?"],
         "What is the footprint of green pea protein?"),
        ("and vitamin A tablets?", ["How much are vitamin D tablets?"],
         "How much are vitamin A tablets?"),
        ("How much does that cost?", ["Is B good?"], "Is B good? How much does that cost?"),
        ("und in Rom?", ["Was kostet ein Hotel in Bonn?"], "Was kostet ein Hotel in Rom?"),
    ],
)  # fmt: skip
def test_a_follow_up_carries_the_question_that_it_leans_on(
    question: str, before: list[str], whole: str
) -> None:
    assert with_subject(question, before) == whole


@given(
    st.text("bdfgkp", min_size=1, max_size=6),
    st.sampled_from(["a", "an", "the", "my", "our", "your", "any", "some"]),
    st.sampled_from(["", "the ", "a ", "my ", "some "]),
)
def test_words_that_end_as_an_article_does_stay_whole(start: str, end: str, article: str) -> None:
    asked = with_subject(f"and {article}{start}{end} protein?", ["Who sells the yellow protein?"])
    assert asked == f"Who sells the {start}{end} protein?"


@pytest.mark.parametrize(
    "question",
    [
        "How do I wait for a reply?", "How are meals and flights paid?",
        "What is an error handler?", "Is there a limit on connections?",
        "How do I write a function that logs requests?", "Is it possible to stream uploads?",
        "How long does it take to get a receipt paid?", "How many files are too many?",
        "How do I use a session instead of a connector?", "Can two servers use the same port?",
        "How do I shift by one week?", "I have Linux. Is it there?", "Do I have to?",
        "In arrow, how do I parse a date?", "from_orm", "Parking?",
        "How do I reset a password? And how long is the link valid?", "in-place sorting",
        "```python\nimport arrow\n```\nHow do I shift this?", "Not found error",
        "Thanks! How do I wait for a reply?", "tell me more about flights",
        "So many requests: how do I limit the rate?", "When does Moorgate get its deliveries?",
        "How does the bakery pay its invoices?", "Do employees get their overtime paid?",
    ],
)  # fmt: skip
def test_a_change_of_subject_carries_nothing(question: str) -> None:
    assert with_subject(question, ["How much may a hotel cost?"]) == question


@pytest.mark.parametrize(
    ("message", "begins"),
    [
        ("Thank you very much!", "You are welcome."), ("ok, that was helpful, thanks 😊", "You"),
        ("No, thanks.", "You are welcome."), ("great, thanks! bye", "You are welcome."),
        ("hey, how are you?", "Ask me"), ("Good morning", "Ask me"), ("Hello, who are you?", "Ask"),
        ("What can I ask?", "Ask me"), ("🤔", "Ask me"), ("...", "Ask me"), ("ok", "Ask me"),
    ],
)  # fmt: skip
def test_what_asks_nothing_gets_a_civil_reply(message: str, begins: str) -> None:
    assert civil_reply(message, follows=True).startswith(begins)


@pytest.mark.parametrize(
    "message",
    [
        "Hello world", "help command", "how do you work with dates?", "merci beaucoup à tous",
        "what do you know about leave?", "->", "++", "C", "*", "hi-fi", "ciao.py", "thank you page",
        "Thanks! How long is leave?", "thanks and for part-time staff?", "ok status", "x" * 300,
        "Who are you going to call?", "which documents do you have on leave?", "? " * 300,
    ],
)  # fmt: skip
def test_what_says_anything_besides_is_a_question(message: str) -> None:
    assert not civil_reply(message, follows=True)


@pytest.mark.parametrize("keyword", ["super", "nice", "yes", "no", "good", "sure"])
def test_a_word_that_only_reacts_is_searched_for_where_nothing_was_said(keyword: str) -> None:
    assert civil_reply(keyword, follows=True)
    assert not civil_reply(keyword, follows=False)
