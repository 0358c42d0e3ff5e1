"""What is quoted is about what was asked, whatever the layout and the language, beside its like.

The reading marks each value of the kind that is asked for, as if the reader could not tell them
apart: what the question names has to decide.
"""

from collections.abc import Callable, Sequence

import pytest
from langchain_core.documents import Document

from crag.parts import Quotation
from tests.generation.test_quoting import asked

NAMES = ("Kestrel", "Merlin", "Osprey", "Harrier", "Goshawk", "Buzzard", "Falcon", "Kite")
PRICES = {name: f"{400 + 37 * n}" for n, name in enumerate(NAMES)}
LANGUAGES = {
    "English": ("What does the {} cost?", "The price is {} euros, without the footprint."),
    "German": ("Was kostet der {}?", "Der Preis beträgt {} Euro, ohne Unterlage."),
    "French": ("Combien coûte le {} ?", "Le prix est de {} euros, sans le tapis de sol."),
}
Layout = Callable[[str, Sequence[tuple[str, str]]], str]


def sections(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    told = (
        f"## {name}\n\nIt weighs {len(name)} kg. {sentence.format(value)}\n" for name, value in rows
    )
    return "\n".join(["# Tents\n", *told])


def bold_lines(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"**{name}**\n\n{sentence.format(value)}\n" for name, value in rows)


def terms(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- **{name}**: {sentence.format(value)}" for name, value in rows)


def table(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(
        ["| | |\n| --- | --- |", *(f"| {n} | {sentence.format(v)} |" for n, v in rows)]
    )


def sentences(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n\n".join(f"{name}: {sentence.format(value)}" for name, value in rows)


def nested(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}\n  - {sentence.format(value)}" for name, value in rows)


def lines(sentence: str, rows: Sequence[tuple[str, str]]) -> str:
    return "  \n".join(f"{name} {sentence.format(value)}" for name, value in rows)


LAYOUTS: list[Layout] = [sections, bold_lines, terms, table, sentences, nested, lines]


def shown(found: Sequence[Quotation]) -> str:
    return "\n".join(f"{one.lead} {one.text}" for one in found)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["Kestrel", "Merlin", "Falcon"])
def test_a_value_is_that_of_the_product_that_was_asked_for(
    layout: Layout, language: str, name: str
) -> None:
    question, sentence = LANGUAGES[language]
    text = layout(sentence, list(PRICES.items()))
    evidence = [sentence.format(value) for value in PRICES.values()]
    said = shown(asked(question.format(name), Document(text), evidence=evidence))
    assert PRICES[name] in said
    assert name in said
    assert [value for value in PRICES.values() if value in said] == [PRICES[name]]


CODES = [f"DX-{2000 + 13 * n}-{'ABCD'[n % 4]}" for n in range(40)]
SHELVES = {code: f"{'ABCDEF'[n % 6]}{n}" for n, code in enumerate(CODES)}
SHELF = {
    "English": ("On which shelf is {}?", "gasket of steel, 2 mm, shelf {}"),
    "German": ("In welchem Regal liegt {}?", "Dichtung aus Stahl, 2 mm, Regal {}"),
    "French": ("Sur quelle étagère se trouve {} ?", "joint en acier, 2 mm, étagère {}"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("language", SHELF)
@pytest.mark.parametrize("code", [CODES[0], CODES[10], CODES[39]])
def test_a_code_is_found_as_it_is_written(layout: Layout, language: str, code: str) -> None:
    question, sentence = SHELF[language]
    text = layout(sentence, list(SHELVES.items()))
    chunks = [Document(part, id=str(n)) for n, part in enumerate(halves(text))]
    said = shown(
        asked(
            question.format(code), *chunks, evidence=[sentence.format(s) for s in SHELVES.values()]
        )
    )
    assert sentence.format(SHELVES[code]) in said
    assert [other for other in CODES if other in said] == [code]


def halves(text: str) -> list[str]:
    """Cut a text in two as chunks are: between blocks, or lines."""
    gap = "\n\n" if text.count("\n\n") > 4 else "\n"
    pieces = text.split(gap)
    middle = len(pieces) // 2
    while gap == "\n\n" and not pieces[middle].startswith(("#", "**", "DX")):
        middle += 1
    head = pieces[:2] if text.startswith("|") else []
    return [gap.join(pieces[:middle]), gap.join([*head, *pieces[middle:]])]


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What does E_404 mean?", "E_404: the page is gone.", "E_405: the page may not be sent."),
        ("What does `connection refused` mean?", "connection refused: nobody listens there.",
         "connection reset: the other side has gone."),
        ("What does “no such table” tell?", "It says no such table where a file is empty.",
         "It says no such column where a name is wrong."),
        ("How long is the guarantee of the Merlin?", "The Merlin has a guarantee of 8 years.",
         "The Kestrel has a guarantee of 9 years."),
        ("Is --no-color read?", "With --no-color nothing is coloured.", "With --color all is."),
        ("Wie hoch ist Paragraf 7?", "Paragraf 7: er ist hoch.", "Paragraf 8: er ist tief."),
    ],
)  # fmt: skip
def test_an_exact_name_wins_over_more_evidence_for_another(
    question: str, right: str, wrong: str
) -> None:
    found = asked(question, *map(Document, (wrong, right)), evidence=[wrong, right[:12]])
    assert found[0].text == right


VERSIONS = [(f"{n}.0", port) for n, port in ((1, "8080"), (2, "9090"), (3, "7070"))]


@pytest.mark.parametrize("read", [1, 3])
@pytest.mark.parametrize("sentence", ["By default it listens on port {}.", "- Default port: {}"])
def test_documents_that_contradict_each_other_are_shown_side_by_side(
    sentence: str, read: int
) -> None:
    documents = [
        Document(
            f"# Lantern {version}\n\n## Ports\n\n{sentence.format(port)}",
            metadata={"title": f"Lantern {version}"},
        )
        for version, port in VERSIONS
    ]
    documents.append(Document(f"# Changelog\n\n## 3.0\n\n{sentence.format('7070')}"))
    evidence = [sentence.format(port) for _, port in VERSIONS[:read]]
    found = asked("On which port does Lantern listen by default?", *documents, evidence=evidence)
    assert [one.lead for one in found] == ["Lantern 1.0:", "Lantern 2.0:", "Lantern 3.0:"]
    assert all(port in one.text for one, (_, port) in zip(found, VERSIONS, strict=True))


@pytest.mark.parametrize(
    ("sentence", "values", "differ"),
    [
        ("Waste is collected on {}.", ("Monday", "Thursday"), True),
        ("The fire warden of the hall is {}.", ("Marta Klein", "Jonas Weber"), True),
        ("The server needs Python {} or later.", ("3.9", "3.11"), True),
        ("Dogs are {} in the hall.", ("allowed", "not allowed"), True),
        ("The lift is serviced every {} months.", ("3", "three"), False),
        ("1. Oil the {}.", ("door", "big door"), False),
        ("A stay at the hall is {}.", ("5 euros", "free"), True),
        ("Beds and meals cost {}.", ("5 euros daily", "7 pounds at weekends for adults"), True),
        ("Beds cost {}.", ("5 euros daily with breakfast", "7 pounds at weekends, once"), False),
    ],
)
def test_documents_disagree_where_they_give_two_answers_to_one_question(
    sentence: str, values: tuple[str, str], *, differ: bool
) -> None:
    texts = [sentence.format(value) for value in values]
    documents = [
        Document(text, metadata={"title": title, "source": title})
        for title, text in zip(("North", "South"), texts, strict=True)
    ]
    found = asked("What do the documents say?", *documents, evidence=[*reversed(values), *texts])
    assert [one.disagrees for one in found] == ([True, True] if differ else [False])


def test_a_short_paragraph_is_quoted_whole_where_its_name_stands_apart_from_the_answer() -> None:
    kettles = [("Osprey", "0.7"), ("Heron", "0.9"), ("Crane", "1.4")]
    texts = [f"{name} kettle, in red. It weighs {weight} kg." for name, weight in kettles]
    found = asked("How much does the Heron weigh?", Document("\n\n".join(texts)), evidence=["0.9"])
    assert shown(found).strip() == texts[1]
    form = "Name: Max Byrne  \nRoom: second floor  \nTelephone: 4452"
    found = asked("What is the telephone of Max Byrne?", Document(form), evidence=["4452"])
    assert found[0].text == form
    found = asked("Who leads Team Red?", Document("- Team Red\n- Ann"), evidence=["Team Red"])
    assert found[0].text == "- Team Red\n- Ann"


def test_values_of_other_things_do_not_contradict() -> None:
    texts = ["The mill was built in 1731.", "The inn was opened in 1850, by the river."]
    found = asked("When was the mill built?", *map(Document, texts), evidence=texts)
    assert shown(found).strip() == texts[0]
    limit = Document("It is 5 euros a night.", metadata={"title": "Limit"})
    price = Document("It is 6 euros a night.", metadata={"title": "Price"})
    (one,) = asked("Which limit counts?", limit, price, evidence="56")
    assert one.text == limit.page_content
    things = [
        ("Mill of Ash", "The mill of Ash is 9 metres tall."),
        ("Inn", "The inn, 7 metres tall."),
    ]
    documents = [
        Document(text, metadata={"title": thing, "source": thing}) for thing, text in things
    ]
    found = asked("How tall is it?", *documents, evidence=["9", "7"])
    leads = ["Mill of Ash:", "Inn:"]
    assert [(one.lead, one.disagrees) for one in found] == [(lead, False) for lead in leads]
    beds = [f"| Oak | {n} EUR |\n| Pine | {n + 1} EUR |\n| Elm | {n + 2} EUR |" for n in (3, 8)]
    texts = [f"# {when}\n\n| Bed | Price |\n| --- | --- |\n{rows}"
             for when, rows in zip(("Summer", "Winter"), beds, strict=True)]  # fmt: skip
    question = "What is the price of Pine in winter?"
    found = asked(question, *map(Document, texts), evidence=["4 EUR", "9 EUR"])
    assert [one.text[-16:] for one in found] == ["| Pine | 9 EUR |"]


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What is a mill?", "A mill is a house where grain is ground.",
         "The mill must be cleaned, as each mill is."),
        ("Why does it stop?", "It stops because the river freezes.", "It stops in the winter."),
        ("How do I stop the wheel?", "How do I stop the wheel? Close the gate.",
         "How do I oil the axle? Use tallow."),
        ("What do guests pay for a bed?", "Guests pay for:\n\n- a bed: 9 EUR",
         "Millers pay for:\n\n- a bed: 2 EUR"),
    ],
)  # fmt: skip
def test_what_is_quoted_answers_what_was_asked(question: str, right: str, wrong: str) -> None:
    found = asked(question, *map(Document, (wrong, right)), evidence=[wrong, right])
    assert found[0].text == right
    assert found[0].sure


@pytest.mark.parametrize(
    ("form", "between", "shown"),
    [
        ("| {} | {} | {} |", "\n| --- | --- | --- |\n", "| red | Mill | 5:20 |"),
        ("- {}, {}: {}", "\n", "red, Mill: 5:20"),
    ],
)
def test_of_a_table_or_list_the_row_with_most_words_of_the_question_is_shown(
    form: str, between: str, shown: str
) -> None:
    rows = [("red", "Quay", "5:12"), ("red", "Mill", "5:20"), ("blue", "Mill", "6:14")]
    lines = [form.format(*row) for row in rows]
    text = form.format("Line", "Stop", "Time") + between + "\n".join(lines)
    found = asked("When is the first red train at Mill?", Document(text), evidence=["6:14"])
    assert shown in found[0].text
    assert "6:14" not in found[0].text
    assert "5:12" not in found[0].text


def test_a_yes_or_no_leads_with_the_sentence_that_decides() -> None:
    text = "Cats sleep in the barn. Dogs are not allowed. Bring a lamp."
    found = asked("Are dogs allowed?", Document(text), evidence=["not allowed"])
    assert found[0].text.startswith("Dogs are not allowed.")
    assert found[0].span is None


@pytest.mark.parametrize("numbers", [(24, 27, 30), ("two", "one", "twelve")])
@pytest.mark.parametrize("old", [("2021", "superseded rules.md"), ("2021, no longer valid", "a")])
def test_what_is_superseded_does_not_lead_and_other_documents_that_disagree_are_marked(
    old: tuple[str, str], numbers: tuple[int | str, int | str, int | str]
) -> None:
    evidence = [f"You have {number} days of holiday a year." for number in numbers]
    documents = [
        Document(evidence[0], metadata={"title": old[0], "source": old[1]}),
        Document(evidence[1], metadata={"title": "Rules", "source": "superseded/b"}),
        Document(evidence[2], metadata={"title": "Rules of Leeds", "source": "c"}),
    ]
    found = asked("How many days of holiday?", *documents, evidence=evidence)
    assert [(one.lead, one.disagrees) for one in found] == [
        ("Rules:", True),
        ("Rules of Leeds:", True),
    ]
    for number, row in enumerate(documents):
        row.metadata["source"] = f"a.csv#{number}"
    found = asked("How many days of holiday?", *documents, evidence=evidence)
    assert not any(one.disagrees for one in found)
