"""Language, words, spelling and sentences of a text."""

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.index.backends.sqlite_file import TOKENIZER
from crag.text.language import language_of, reads
from crag.text.sentences import sentences_of, split_sentences
from crag.text.spelling import FEWEST_LETTERS, respelled
from crag.text.words import exact_names, question_words, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`httpx.ProxyError`,", ["httpx.proxyerror", "httpx", "proxi", "error"]),
        ("(--no-color)", ["--no-color", "no", "color"]), ("E_404!", ["e_404", "e", "404"]),
        ("C++ and C#.", ["c++", "c", "and", "c#", "c"]),
        ("__init__.py", ["__init__.py", "init", "py"]), ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("PromQL JITs", ["promql", "jit"]),
        ("the cat's toys don’t run", ["the", "cat", "toy", "don", "run"]),
        ("Füße naïve", ["fuss", "naiv"]), ("東京の天気 x", ["東京", "京の", "の天", "天気", "x"]),
        ("Python言語", ["python", "言語"]), ("데비안은 v2", ["데비", "비안", "안은", "v2"]),
        ("80,000 or 1’000, 13", ["80000", "or", "1000", "13"]),
        ("月", ["月"]), ("हिन्दी", ["हिन्दी"]), ("?! …", []), ("a" * 200, ["a" * 100]),
    ],
)  # fmt: skip
def test_words(text: str, found: list[str]) -> None:
    assert list(words(text)) == found


def test_stop_words_are_not_searched_for_unless_there_are_no_others() -> None:
    assert question_words("Why does the very server fail before a fail?") == [
        "server",
        "fail",
        "befor",
    ]
    assert question_words("to be or not to be") == ["to", "be", "or", "not"]


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What does E_404 mean?", True), ("error 1045", True),
        ("Why does httpx.ProxyError come?", True), ("What is --no-color for?", True),
        ("Where is $HOME?", True), ("Is C++ faster?", True), ("Is the light on/off?", False),
        ("Which long-life milk... do you sell, and why?", False),
        ("Why does the server fail?", False),
    ],
)  # fmt: skip
def test_a_question_asks_for_a_name(question: str, asks: bool) -> None:
    assert bool(exact_names(question)) is asks


@given(st.text(max_size=80))
def test_any_word_is_found_by_fts(text: str) -> None:
    """The tokenizer of SQLite takes each word as one token, so that it is found as it is."""
    found = list(words(text))
    assert all(not set(word) & set("'\"\\ \t\n") and len(word) <= 100 for word in found)
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE VIRTUAL TABLE t USING fts5 (text, tokenize = {TOKENIZER})")
        database.execute("INSERT INTO t VALUES (?)", (" ".join(found),))
        for word in found:
            query = "SELECT count(*) FROM t WHERE t MATCH ?"
            assert database.execute(query, (f'"{word}"',)).fetchone() == (1,)
        database.execute("CREATE VIRTUAL TABLE v USING fts5vocab (t, 'row')")
        stored = {row[0] for row in database.execute("SELECT term FROM v")}
        assert stored == set(found)
    finally:
        database.close()


TEXTS = {
    "de": "Die Frist beträgt vier Wochen. Danach wird der Vertrag aufgelöst.",
    "fr": "Le délai est de quatre semaines. Ensuite le contrat est résilié.",
    "es": "El plazo es de cuatro semanas. Después se rescinde el contrato.",
    "ru": "Срок составляет четыре недели. Затем договор расторгается.",
    "ja": "期間は四週間です。その後、契約は解除されます。",
    "zh": "期限为四周。之后合同将被解除。",
    "ko": "기간은 4주입니다. 그 후 계약이 해지됩니다.",
    "en": "The period is four weeks. After that, the contract is cancelled.",
}


@pytest.mark.parametrize(("language", "text"), TEXTS.items())
def test_languages(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "", "Ja.", "12.04.2026 14:00", "x = np.zeros((3, 4)); y = x @ w.T", "timeout",
        "`httpx.ProxyError` --no-color /usr/share/doc https://example.org/ein/langer/pfad",
    ],
)  # fmt: skip
def test_code_and_short_texts_are_in_no_language(text: str) -> None:
    assert language_of(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "What does `DateiNichtGefunden` mean in httpx.AsyncClient?",
        "What is Henri Cartier-Bresson's occupation?",
        "Who wrote Die Leiden des jungen Werthers?",
        "Which port does it use?",
    ],
)
def test_english_with_foreign_names_is_english(text: str) -> None:
    assert language_of(text) == "en"


class German:
    languages = ("de",)


def test_what_a_model_does_not_read() -> None:
    read = [reads(German(), text) for text in (TEXTS["fr"], TEXTS["de"], "Ja.")]
    assert (read, reads(object(), TEXTS["fr"])) == ([False, True, True], True)


TEXTS_OF_DOCUMENTS = [
    "The harbour of Quellmoor was dug in 1731, and its keeper was Ilse Brandt.",
    "Lemons infuse for six days. Set the default of `websockets` in the configuration.",
    "The grade of redis is a sorrow and a morrow.",
]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("When was the harbuor of Quellmoor dug?", "When was the harbour of Quellmoor dug?"),
        ("When was the harbour of Qeullmoor dug?", "When was the harbour of Quellmoor dug?"),
        ("How long do the lemnos inufse?", "How long do the lemons infuse?"),  # Lemnos is known.
        ("what is the defaul of websockts", "what is the defaul of websockets"),
        ("Which confguration is the deafult?", "Which configuration is the default?"),
        ("How long do leons infuse in the harbor?", "How long do lemons infuse in the harbor?"),
        ("How deep is Quelmoor?", "How deep is Quellmoor?"),
        ("How long must I wiat for the reciept?", "How long must I wiat for the receipt?"),
    ],
)
def test_what_neither_documents_nor_english_have_is_corrected(typed: str, meant: str) -> None:
    assert respelled(typed, TEXTS_OF_DOCUMENTS) == meant


@pytest.mark.parametrize(
    "question",
    [
        "Which harbours are there?",  # Another form of a word of theirs,
        "How do I build it with CMakes?",  # a name with a capital within,
        "What does `harbuor` mean?",  # code,
        'What does "harbuor" mean?',  # a quotation,
        "What does harbuor.keeper(lemnos) do with --defualt=qeullmoor and /etc/harbuor?",
        "What does utf_81 do?",  # a number is no word.
        "Can guacamole be made of tulips?",  # and words of everyday English.
        "Shouldn't it be there?",
        "Does it build with gradle and redix?",
        "Is the lighthouse of Cape Merrow there?",
        "Was ist ein Hafne?",
        "",
    ],
)
def test_what_may_be_meant_stays(question: str) -> None:
    assert respelled(question, TEXTS_OF_DOCUMENTS) == question


def test_what_is_clearly_in_another_language_stays() -> None:
    texts = ["Der Hafen wurde 1731 ausgehoben, und die Kündigung braucht eine Frist."]
    asked = "Wann wurde der Hafen ausgehoebn, und wie lange ist die Wartezeti?"
    assert respelled(asked, texts) == asked


@given(st.text(max_size=200))
def test_only_words_change_and_by_one_error_each(question: str) -> None:
    read = respelled(question, TEXTS_OF_DOCUMENTS)
    pairs = zip(re.findall(r"\w+", question), re.findall(r"\w+", read), strict=True)
    changed = [(typed, meant) for typed, meant in pairs if typed != meant]
    assert all(len(typed) >= FEWEST_LETTERS for typed, _ in changed)
    assert all(abs(len(typed) - len(meant)) <= 1 for typed, meant in changed)
    assert re.sub(r"\w+", "", question) == re.sub(r"\w+", "", read)


@pytest.mark.parametrize(
    "text",
    [
        # A "|" stands where a sentence ends.
        "Die Mauer fiel am 9. November 1989.|Sie stand z. B. in Berlin, ca. 28 Jahre.",
        "Im 19. Jahrhundert galt die 3. Auflage.|Der Wert ist 40.|Er gilt, s. Abb. 3, d. h. immer.",
        "Dr. Müller sah es in Kapitel 12.|Es steht dort.",
        "M. Dupont habite à Paris.|Il a p. ex. deux chats, cf. art. 5 du code.|C'est la fin.",
        "El Sr. García vive en Madrid desde 1950.|¿Qué pasó?|Lo dice la pág. 3 del libro.",
        "Он родился в 1950 г. в Москве.|Потом он уехал, т. е. вернулся.|А. С. Пушкин там был.",
        "Narodil se 9. listopadu 1989 na 5. patře.|Bylo to např. v Praze.",
        "De muur viel op 9 nov. 1989 in Berlijn.|Dhr. Jansen zag het, d.w.z. vanaf het plein.",
        "Mur upadł 9. listopada 1989 r. w Berlinie.|To było np. tam.",
        "If there is no route, the tunnel is down; call 4471.|quota exceeded: remove it.",
        "You may start the new one in the CLI.|git lists it in approx. 3 steps.|(It is fast.)",
        "これは文です。|次の文です！|本当ですか？",
        "기간은 4주입니다.|예.|unstable에는 가장 최신 버전이 있습니다.",
        "यह एक वाक्य है।|यह दूसरा है।",
    ],
)
def test_sentences(text: str) -> None:
    assert sentences_of(text.replace("|", " ")) == text.split("|")


def test_the_language_may_be_named() -> None:
    text = "Am 9. Mai."
    assert split_sentences(text) == ["Am 9. ", "Mai."]  # Too short to tell its language.
    assert split_sentences(text, "de") == [text]


def test_a_paragraph_ends_a_sentence_whatever_follows() -> None:
    pieces = ["All of it is in item 3.\n\n", "the rest is here, and it is long enough."]
    assert split_sentences("".join(pieces)) == pieces


def test_marks_without_words_belong_to_the_sentence_before() -> None:
    row = "| `upper` | none | Upper threshold: it is reached. Empty: the midpoint. |"
    assert split_sentences(row)[-1] == "Empty: the midpoint. |"
    assert "".join(split_sentences(row)) == row
