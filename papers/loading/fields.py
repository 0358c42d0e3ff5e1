"""Read typed fields from JSON rows; a missing or invalid field makes the row unusable."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from crag.papers.loading.read_log import JsonRow, ReadLog, UnusableRowError

_LETTERS = "ABCDE"
_FEWEST, _USUAL = 3, 4
_VERDICTS = {"true": "true", "false": "false", "SUPPORTS": "true", "REFUTES": "false"}


def text(row: JsonRow, *keys: str) -> str:
    """Return the value of the first of `keys` in the row; it must be non-empty text."""
    for key in keys:
        if row.get(key) is not None:
            return _valid(key, row[key])
    message = f"{keys[0]!r} is missing"
    raise UnusableRowError(message)


def _valid(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        message = f"{key!r} is {value!r}; it must be a text"
        raise UnusableRowError(message)
    try:
        value.encode()
    except UnicodeEncodeError as error:  # Half an emoji, left by broken escapes.
        message = f"{key!r} holds half a character (position {error.start})"
        raise UnusableRowError(message) from error
    return value.strip()


def texts(row: JsonRow, key: str) -> tuple[str, ...]:
    """Return the texts of a list without duplicates, in order; a single text is a list of one."""
    value = row.get(key)
    if value is None:
        message = f"{key!r} is missing"
        raise UnusableRowError(message)
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, Sequence):
        message = f"{key!r} is {value!r}; it must be a list of texts"
        raise UnusableRowError(message)
    return tuple(dict.fromkeys(_valid(key, one) for one in values))


def identity(row: JsonRow, number: int, *keys: str) -> str:
    """Return the row's own id, or one built from its number."""
    for key in keys:
        if isinstance(row.get(key), str | int) and str(row[key]).strip():
            return str(row[key]).strip()
    return f"row-{number}"


def objects(row: JsonRow, *keys: str) -> list[Mapping[str, Any]] | None:
    """Return the list of objects under the first of `keys` in the row, or None."""
    found = next((key for key in keys if row.get(key) is not None), None)
    if found is None:
        return None
    value = row[found]
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        message = f"{found!r} must be a list of objects"
        raise UnusableRowError(message)
    return value


def documents(
    entries: Iterable[Mapping[str, Any]] | None, number: int, reading: ReadLog
) -> tuple[Document, ...]:
    """Turn passages into documents, in order; skip and count empty ones."""
    made = []
    for position, entry in enumerate(entries or ()):
        content = entry.get("text")
        if not isinstance(content, str) or not content.strip():
            reading.repair("skipped passages without text", number)
            continue
        made.append(Document(_valid("text", content), metadata=_metadata(entry, position)))
    if not made:
        reading.repair("kept although it has no passage", number)
    return tuple(made)


def _metadata(entry: Mapping[str, Any], position: int) -> dict[str, Any]:
    """Keep title, id, place and the labels; `label` of our files is whether the page is right."""
    metadata: dict[str, Any] = {
        "title": str(entry.get("title") or "").strip(),
        "id": str(entry.get("id") or f"passage-{position + 1}"),
        "position": position,
    }
    if isinstance(entry.get("url"), str):
        metadata["url"] = entry["url"]
    if isinstance(entry.get("label"), int | float):
        metadata["relevant"] = entry["label"] > 0
    if isinstance(entry.get("answer"), bool):
        metadata["answer"] = entry["answer"]
    return metadata


def verdict(row: JsonRow, number: int, reading: ReadLog) -> str:
    """Return whether a claim is `true` or `false`, from `answers` or `label`."""
    if isinstance(row.get("label"), bool):
        return str(row["label"]).lower()
    given = texts(row, "answers" if row.get("answers") is not None else "label")
    if len(given) != 1 or given[0] not in _VERDICTS:
        message = f"the verdict is {given!r}; it must be one of {', '.join(_VERDICTS)}"
        raise UnusableRowError(message)
    if given[0] != _VERDICTS[given[0]]:
        reading.repair("read SUPPORTS as true and REFUTES as false", number)
    return _VERDICTS[given[0]]


def choices(row: JsonRow, number: int, reading: ReadLog) -> tuple[tuple[str, str], ...]:
    """Return label and text of each option as published, noting unusual ones."""
    given = row.get("choices")
    if not isinstance(given, Mapping):
        raise UnusableRowError("'choices' is missing; it must hold 'label' and 'text'")
    labels, options = given.get("label"), given.get("text")
    if not isinstance(labels, list) or not isinstance(options, list):
        raise UnusableRowError("'choices' must hold two lists, 'label' and 'text'")
    return checked_choices(list(zip_equal(labels, options)), number, reading)


def zip_equal(labels: list[Any], options: list[Any]) -> Iterable[tuple[str, str]]:
    """Pair labels with options; there must be as many of both."""
    if len(labels) != len(options):
        message = f"{len(labels)} labels cannot belong to {len(options)} options"
        raise UnusableRowError(message)
    return (
        (str(label).strip(), str(option).strip())
        for label, option in zip(labels, options, strict=True)
    )


def checked_choices(
    pairs: Sequence[tuple[str, str]], number: int, reading: ReadLog
) -> tuple[tuple[str, str], ...]:
    """Return the options; repeated labels are an error, unusual numbers and labels are noted."""
    labels = [label for label, _ in pairs]
    if len(set(labels)) != len(labels) or len(labels) < _FEWEST:
        message = f"the options are labelled {labels}; each needs its own label"
        raise UnusableRowError(message)
    if len(pairs) != _USUAL:
        reading.repair(f"{len(pairs)} options; the published prompts have A to D", number)
    return tuple(pairs)


def answer_key(
    row: JsonRow, options: Sequence[tuple[str, str]], number: int, reading: ReadLog
) -> str:
    """Return the answer key as published; it must be the label of an option."""
    key = text(row, "answerKey")
    labels = [label for label, _ in options]
    if key not in labels:
        message = f"the answer key {key!r} is not among the labels {labels}"
        raise UnusableRowError(message)
    if key not in _LETTERS:
        reading.repair("numeric answer key; only the mapped score can use it", number)
    return key
