"""The language of a text, where it is clear."""

import pytest

from crag.text.language import language_of, languages_of, unread_language

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
        "",
        "Ja.",
        "12.04.2026 14:00",
        "x = np.zeros((3, 4)); y = x @ w.T",
        "`httpx.ProxyError` --no-color /usr/share/doc https://example.org/ein/langer/pfad",
        "timeout",
    ],
)
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
    assert unread_language(German(), TEXTS["fr"]) == "fr"
    assert unread_language(German(), TEXTS["de"]) == ""
    assert unread_language(German(), "Ja.") == ""
    assert unread_language(object(), TEXTS["fr"]) == ""
    assert (languages_of(German()), languages_of(object())) == ({"de"}, frozenset())
