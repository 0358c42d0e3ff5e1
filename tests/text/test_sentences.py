"""Sentence ends in other languages than English, whose tests are in tests/documents."""

import pytest

from crag.text.sentences import sentences_of, split_sentences


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


def test_marks_without_words_belong_to_the_sentence_before() -> None:
    row = "| `upper` | none | Upper threshold: it is reached. Empty: the midpoint. |"
    assert split_sentences(row)[-1] == "Empty: the midpoint. |"
    assert "".join(split_sentences(row)) == row
