"""What an element's attributes and inline style say about whether its text can be seen."""

import re
from collections.abc import Mapping

Colour = tuple[int, int, int] | str
"""Red, green and blue from 0 to 255, or a name that stands for itself."""
_COMMENT = re.compile(r"/\*.*?(\*/|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?", re.IGNORECASE)
_LENGTH = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))([a-z%]*)")
_PIXELS = {"em": 16.0, "rem": 16.0, "pt": 4 / 3, "%": 0.16, "vw": 10.0, "vh": 10.0, "ex": 8.0}
_HEX = re.compile(r"#([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_PARTS = re.compile(r"[\d.]+%?")
_NO_CLIP = re.compile(r"rect\(\s*(?:[01](?:px)?[\s,]*){4}\)|inset\((5\d|[6-9]\d|100)%|circle\(0")
_SCALE = re.compile(r"scale[xy]?\(\s*(?:(?:0+(?:\.0*)?|\.0*)\s*)?[,)]")
_NAMED: dict[str, Colour] = {
    "white": (255, 255, 255),
    "snow": (255, 250, 250),
    "ivory": (255, 255, 240),
    "ghostwhite": (248, 248, 255),
    "floralwhite": (255, 250, 240),
    "whitesmoke": (245, 245, 245),
    "black": (0, 0, 0),
}
_WHITE = _NAMED["white"]
_NEAR = 16
"""Steps of one colour channel (0 to 255) that readers cannot distinguish."""
_AWAY = -900.0
"""Pixels beyond an edge where no window reaches."""


def declarations(style: str) -> dict[str, str]:
    """Read an inline style; names and values in lower case, of several values the last."""
    if "\\" in style:
        style = _ESCAPE.sub(lambda match: chr(min(int(match[1], 16), 0x10FFFF)), style)
    pairs = (part.split(":", 1) for part in _COMMENT.sub(" ", style).lower().split(";"))
    return {
        pair[0].strip(): pair[1].replace("!important", "").strip()
        for pair in pairs
        if len(pair) == 2  # noqa: PLR2004 - a name and a value
    }


def hides(attributes: Mapping[str, str], style: Mapping[str, str]) -> bool:
    """Say whether an element and all within it are kept from readers' eyes."""
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden", "").strip().lower() == "true"
        or style.get("display") == "none"
        or style.get("visibility") in {"hidden", "collapse"}
        or style.get("content-visibility") == "hidden"
        or _is_without_size(style)
        or any(_pixels(style.get(name), 0.0) <= _AWAY for name in _OFFSETS)
        or bool(_NO_CLIP.match(style.get("clip", "") or style.get("clip-path", "")))
        or bool(_SCALE.search(style.get("transform", "")))
    )


_OFFSETS = ("left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top")


def _is_without_size(style: Mapping[str, str]) -> bool:
    clipped = style.get("overflow", "") in {"hidden", "clip"}
    sizes = ("height", "width", "max-height", "max-width")
    return (
        _pixels(style.get("font-size"), 16.0) < 2  # noqa: PLR2004 - pixels; nobody reads smaller
        or _pixels(style.get("opacity"), 1.0) < 0.05  # noqa: PLR2004 - a share
        or (clipped and any(_pixels(style.get(size), 99.0) < 2 for size in sizes))  # noqa: PLR2004
    )


def _pixels(value: str | None, default: float) -> float:
    match = _LENGTH.match(value or "")
    return float(match[1]) * _PIXELS.get(match[2], 1.0) if match else default


def colour_of(attributes: Mapping[str, str], style: Mapping[str, str]) -> Colour | None:
    """Return the colour of an element's text, None if it is not set here."""
    return _colour(style.get("color") or attributes.get("color", ""))


def background_of(attributes: Mapping[str, str], style: Mapping[str, str]) -> Colour | None:
    """Return the colour behind an element's text; None if not set here or transparent."""
    value = style.get("background-color") or style.get("background") or ""
    colour = _colour(value or attributes.get("bgcolor", ""))
    return None if colour in {"transparent", "none"} else colour


def is_lost(colour: Colour | None, background: Colour | None) -> bool:
    """Say whether text of this colour cannot be told from its background, white where unknown."""
    if colour is None:
        return False
    if isinstance(colour, str):
        return colour in {"transparent", background}
    behind = _WHITE if background is None else background
    return not isinstance(behind, str) and all(
        abs(channel - other) <= _NEAR for channel, other in zip(colour, behind, strict=True)
    )


def _colour(value: str) -> Colour | None:
    value = value.strip().lower()
    if value in {"", "inherit", "initial", "unset", "currentcolor"}:
        return None
    if match := _HEX.match(value):
        return _from_hex(match[1])
    if value.startswith("rgb"):
        return _from_numbers(_PARTS.findall(value.split(")")[0]))
    word = value.partition(" ")[0]
    return _NAMED.get(word, word)


def _from_hex(digits: str) -> Colour:
    if len(digits) < 6:  # noqa: PLR2004 - one digit for each channel
        digits = "".join(2 * digit for digit in digits)
    if digits[6:] == "00":
        return "transparent"
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _from_numbers(parts: list[str]) -> Colour | None:
    if len(parts) < 3:  # noqa: PLR2004 - red, green, blue
        return None
    if len(parts) > 3 and not parts[3].strip("0.%"):  # noqa: PLR2004 - and alpha
        return "transparent"
    red, green, blue = (_channel(part) for part in parts[:3])
    return red, green, blue


def _channel(part: str) -> int:
    digits = part.rstrip("%")
    number = float(digits) if digits.count(".") <= 1 and digits != "." else 0.0
    return round(min(number * 2.55 if part.endswith("%") else number, 255))
