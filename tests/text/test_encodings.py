"""Encodings of files and of web pages; `tests/web/test_transcribe.py` has those of pages."""

import pytest

from crag.errors import ContentError
from crag.text.encodings import decoded, storable

TEXT = "Die Mühle läuft für Königin und Käufer, so heißt es in der Straße. "


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_plain_text(encoding: str) -> None:
    assert decoded((TEXT * 5).encode(encoding), "text/plain") == TEXT * 5


def test_a_meta_element_counts_in_html_only() -> None:
    body = f"<meta charset='iso-8859-5'> {TEXT}".encode()
    assert TEXT in decoded(body, "text/plain")
    assert TEXT in decoded(body, "text/markdown; charset=utf-8")
    declared = f"<meta charset='iso-8859-1'> {TEXT}".encode("latin-1")
    assert TEXT in decoded(declared, "text/html")


@pytest.mark.parametrize("body", [b"\x89PNG\r\n\x1a\n\0\0", bytes(range(256)) * 9, b"\0" * 9])
def test_binary_content(body: bytes) -> None:
    with pytest.raises(ContentError, match="looks binary"):
        decoded(body, "text/plain")


SENTENCES = {
    ("cp1252", "fr"): [
        "Où se trouve la boîte de secours ?", "Fermé à Noël", "Déjà vu", "L'élève reçoit sa clé.",
    ],
    ("cp1252", "sv"): ["Nyckeln ligger på hyllan över spisen.", "Räksmörgås", "Öppettider: 9–17"],
    ("cp1252", "pt"): ["A reunião começa às nove.", "São Paulo", "Informações úteis"],
    ("cp1252", "es"): ["¿Dónde está el baño de señoras?", "Años", "El niño bebió café."],
    ("cp1252", "de"): [
        "Die Mühle läuft für Königin und Käufer.", "Grüße", "Größe: 5 m", "„Schön“ – 5 €",
    ],
    ("cp1252", "da"): ["Nøglen ligger på hylden over køkkenet.", "Ærø ligger på kortet."],
    ("cp1252", "it"): ["La riunione è alle nove; perché non può venire?"],
    ("cp1250", "cs"): ["Schůze začíná v devět hodin ráno.", "Klíč je v kuchyni."],
    ("cp1250", "pl"): ["Spotkanie zaczyna się o dziewiątej rano.", "Klucz leży na półce."],
    ("cp1250", "hu"): ["A gyűlés kilenc órakor kezdődik."],
    ("cp1254", "tr"): ["Toplantı sabah dokuzda başlıyor.", "Giriş ücretsizdir."],
    ("cp1257", "lt"): ["Susitikimas prasideda devintą valandą ryto."],
    ("cp1251", "ru"): ["Собрание начнётся в девять часов утра."],
    ("koi8-r", "ru"): ["Собрание начнётся в девять часов утра.", "Магазин открыт"],
    ("big5", "zh"): ["燈塔九點開門，請在門口等候。"],
    ("cp1255", "he"): ["המגדלור נפתח בשעה תשע."],
    ("cp866", "ru"): ["Собрание начнётся в девять часов утра."],
    ("cp1253", "el"): ["Η συνάντηση αρχίζει στις εννέα το πρωί."],
    ("cp932", "ja"): ["会議は午前九時に始まります。入場は無料です。", "灯台は九時に開く"],
    ("gb18030", "zh"): ["会议在上午九点开始。欢迎所有人参加。", "灯塔九点开门。"],
    ("euc_kr", "ko"): ["회의는 오전 아홉 시에 시작합니다. 입장은 무료입니다."],
    ("iso8859-15", "fr"): ["L'entrée coûte 8 €, et l'œuvre 9 €."],
    ("utf-16-be", "es"): ["El niño bebió café."],
    ("utf-8", "fr"): ["Où se trouve la boîte de secours ?"],
    ("utf-16", "sv"): ["Nyckeln ligger på hyllan."],
}  # fmt: skip
CASES = [(encoding, text) for (encoding, _), texts in SENTENCES.items() for text in texts]


@pytest.mark.parametrize("times", [1, 12])
@pytest.mark.parametrize(("encoding", "text"), CASES)
def test_the_encoding_fits_the_language(encoding: str, text: str, times: int) -> None:
    whole = "\n".join([text] * times)
    assert decoded(whole.encode(encoding), "text/plain") == whole


def test_what_cannot_be_stored_is_replaced_one_for_one() -> None:
    assert storable("a\ud800b\0c\N{SNOWMAN}") == "a?b\ufffdc\N{SNOWMAN}"
