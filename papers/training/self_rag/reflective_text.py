"""Outputs with reflection tokens: the order in which they are legal, and the loss on them."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from crag.papers.training.self_rag.language_trainer import TokenText, token_text
from crag.parts import Prefix
from crag.reflection.prompt_format import decision_prompt
from crag.reflection_tokens import (
    CLOSE,
    CONTINUE,
    END,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    OPEN,
    PAD,
    RELEVANT,
    RETRIEVAL,
    SUPPORT,
    TOKENS,
    UTILITY,
    token_ids,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ANY = re.compile("|".join(map(re.escape, (*TOKENS, PAD, END))))
_PASSAGE = re.compile(rf"{re.escape(OPEN)}.*?{re.escape(CLOSE)}", re.DOTALL)
_LIKE_TOKENS = re.compile(
    r"\[(?:utility|(?:no )?retriev|continue to|(?:ir)?relevant|(?:\w+ )?support)[^\]\n]*\]"
    r"|</?paragraph\b[^>\n]*>",
    re.IGNORECASE,
)
"""What a writer of records may have meant as a token, such as ``[Utility:6]``."""
_KIND = {
    RETRIEVAL: "R", NO_RETRIEVAL: "N", CONTINUE: "C", OPEN: "<", CLOSE: ">", RELEVANT: "r",
    IRRELEVANT: "i", **dict.fromkeys(SUPPORT, "s"), **dict.fromkeys(UTILITY, "u"),
}  # fmt: skip
_LEGAL = re.compile(r"(?:Nt|R<t>(?:rts|it))(?:t|Nt|Ct|R<t>(?:rts|it))*u\Z")
"""One letter for a token, `t` for text; as the assembly of Alg. 2 puts them together."""


def fault_of(output: str) -> str:
    """Return what is wrong with the tokens of an output, in a few words; empty if nothing is.

    Legal: a Retrieve token first; a passage between its tags after each ``[Retrieval]``, then IsRel
    and a sentence, and IsSup exactly where the passage is relevant; one IsUse at the very end.
    """
    letters = _letters(output)
    if letters is None:
        return "an end or pad token in the output"
    unknown = _LIKE_TOKENS.search(_ANY.sub("", _PASSAGE.sub("", output)))
    checks = (
        (_opened(letters), "unbalanced paragraph tags"),
        (unknown, f"an unknown token {unknown.group()}" if unknown else ""),
        (not letters.replace("t", ""), "no reflection tokens"),
        (letters[:1] not in {"N", "R"}, "no Retrieve token at the beginning"),
        (letters.find("u") != len(letters) - 1, "not exactly one IsUse token at the end"),
        ("t" not in letters.replace("<t>", ""), "no sentence"),
        (not _LEGAL.match(letters), "tokens in an illegal order"),
    )
    return next((fault for found, fault in checks if found), "")


def _letters(output: str) -> str | None:
    letters, place = "", 0
    for found in _ANY.finditer(output):
        letters += "t" * bool(output[place : found.start()].strip())
        if found.group() in {PAD, END}:
            return None
        letters += _KIND[found.group()]
        place = found.end()
    return letters + "t" * bool(output[place:].strip())


def _opened(letters: str) -> bool:
    tags = "".join(letter for letter in letters if letter in "<>")
    return tags != "<>" * (len(tags) // 2)


def reflective_text(
    tokenizer: "PreTrainedTokenizerBase",
    instruction: str,
    output: str,
    max_length: int,
    *,
    learn_unsupported: bool = True,
) -> TokenText | None:
    """Return instruction and output as tokens; None if the instruction alone fills `max_length`.

    Learned are the output, its tokens and the end; not the prompt, and not what stands between
    paragraph tags, of each pair by itself (the released code masks from the first opening to the
    last closing tag). The tags are learned. Without `learn_unsupported` the words of sentences
    that end in ``[No support / Contradictory]`` are not. A longer record is cut at its end.
    """
    prompt: list[int] = tokenizer(decision_prompt(Prefix(instruction))).input_ids
    if len(prompt) >= max_length:
        return None
    written: list[int] = tokenizer(output, add_special_tokens=False).input_ids
    end: Any = tokenizer.eos_token_id
    ids = [*prompt, *written, end]
    numbers = token_ids(tokenizer)
    learned = [False] * len(prompt) + list(_learned(ids[len(prompt) :], numbers))
    if not learn_unsupported:
        for place in _unsupported(ids, numbers):
            learned[place] = False
    return token_text(ids[:max_length], learned[:max_length])


def _learned(ids: list[int], numbers: dict[str, int]) -> Iterator[bool]:
    inside = False
    for number in ids:
        inside = inside and number != numbers[CLOSE]
        yield not inside
        inside = inside or number == numbers[OPEN]


def _unsupported(ids: list[int], numbers: dict[str, int]) -> Iterator[int]:
    """Yield the places of the words between ``[Relevant]`` and ``[No support / Contradictory]``."""
    start = 0
    for place, number in enumerate(ids):
        if number == numbers[RELEVANT]:
            start = place + 1
        elif number == numbers[NO_SUPPORT]:
            yield from range(start, place)
