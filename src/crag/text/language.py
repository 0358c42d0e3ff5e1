"""Which language a text is written in."""

import re
import threading
from functools import cache, lru_cache
from typing import Any

ENGLISH = "en"
LANGUAGES = frozenset(
    "ar bg bn ca cs da de el en es et eu fa fi fr gl he hi hr hu hy id is it ja ka km kn ko lo lt "  # noqa: SIM905
    "lv mk ml mr my nl no pa pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur vi zh".split()
)
"""The languages that are told apart, by ISO 639-1 code; others are taken for a similar one."""

_FEWEST_LETTERS = 12
"""Fewer letters, such as those of a name, do not show a language."""
_LETTERS_IN_SYLLABLE = 3
"""That a character counts for in scripts whose characters are syllables or words."""
_SURE = 0.5
"""The probability from which on the model's guess is used."""
_SAMPLE = 1000
"""Characters of each part of a long text that are read."""
_WORD = re.compile(
    r"(?<![\w./\\@#$%&=<>:`*-])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w/\\@#$%&=<>(\[{`-]|[.:]\w)"
)
"""A word that is no part of a name, an address or a piece of code."""
_SYLLABLE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_FUNCTION_WORDS = frozenset(
    "the of and are what which how does did with from that this when where who whose why your you "  # noqa: SIM905
    "there their they have has been would should can could if not for it was to on at by be".split()
)
_QUESTION_WORDS = frozenset("what which how does who whose why when where".split())  # noqa: SIM905
_ENGLISH_SHARE = 1 / 6
_FOREIGN_SHARE = 0.1


def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language of a text; empty if it is unclear.

    Names, addresses and code do not count, and fewer than a dozen letters tell nothing. Of a long
    text, its beginning, middle and end are read. The model is py3langid's; where no temporary file
    can be written it cannot be loaded, and all but English is unclear.
    """
    starts = (0, (len(text) - _SAMPLE) // 2, len(text) - _SAMPLE)
    samples = [text[start : start + _SAMPLE] for start in starts]
    return _language_of(" ".join(samples) if len(text) > 3 * _SAMPLE else text)


def reads(model: object, text: str) -> bool:
    """Return whether a model reads a text, by its attribute `languages`; without one it does."""
    languages = getattr(model, "languages", ())
    return not languages or language_of(text) in {*languages, ""}


@lru_cache(maxsize=2048)
def _language_of(text: str) -> str:
    words = _WORD.findall(text)
    letters = "".join(words)
    syllables = len(_SYLLABLE.findall(letters))
    if len(letters) + (_LETTERS_IN_SYLLABLE - 1) * syllables < _FEWEST_LETTERS:
        return ""
    if _is_plain_english(words, letters):
        return ENGLISH
    try:
        with _identifying:
            language, probability = _identifier().classify(" ".join(words))
    except OSError:
        return ""
    return str(language) if probability >= _SURE else ""


def _is_plain_english(words: list[str], letters: str) -> bool:
    """Say whether enough function words are English: most texts then need no model."""
    foreign = sum(not letter.isascii() for letter in letters)
    known = sum(word.lower() in _FUNCTION_WORDS for word in words)
    is_english = known >= max(2, len(words) * _ENGLISH_SHARE) or words[0].lower() in _QUESTION_WORDS
    return is_english and foreign <= len(letters) * _FOREIGN_SHARE


_identifying = threading.Lock()


@cache
def _identifier() -> Any:
    """Load the model: half a second and 100 MB.

    Raises:
        OSError: there is no room for the temporary file that it is unpacked into.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(sorted(LANGUAGES))
    return identifier
