"""Outputs with reflection tokens: the order in which they are legal, and the loss on them."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from crag.papers.self_rag.language_model import LanguageRecipe, TokenText, token_text
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
"""One letter for a token, `t` for text, `e` for an end or pad; as Alg. 2 puts them together."""
_RELEASED = re.compile(r"t?(?:[NC]t?|R<t?>(?:rt?s|it?)t?)*u\Z")
"""The same for the released data, which may begin with sentences that were copied without tokens,
and in which three of the 145,619 records have a token without its sentence."""


def fault_of(output: str, *, released: bool = False) -> str:
    """Return what is wrong with the tokens of an output, in a few words; empty if nothing is.

    Legal: a Retrieve token first; a passage between its tags after each ``[Retrieval]``, then IsRel
    and a sentence, and IsSup exactly where the passage is relevant; one IsUse at the very end. In
    the `released` data short sentences may come before the first token.
    """
    letters, place = "", 0
    for found in _ANY.finditer(output):
        letters += "t" * bool(output[place : found.start()].strip())
        letters += _KIND.get(found.group(), "e")
        place = found.end()
    letters += "t" * bool(output[place:].strip())
    unknown = _LIKE_TOKENS.search(_ANY.sub("", _PASSAGE.sub("", output)))
    if unknown and not released:
        return f"an unknown token {unknown.group()}"
    legal = _RELEASED if released else _LEGAL
    return "" if legal.match(letters) else "tokens in an illegal order"


def reflective_text(  # noqa: PLR0913 - the record, and how it is learned
    tokenizer: "PreTrainedTokenizerBase",
    instruction: str,
    output: str,
    max_length: int,
    *,
    learn_unsupported: bool = True,
    as_released: bool = False,
) -> TokenText | None:
    """Return instruction and output as tokens; None if the instruction alone fills `max_length`.

    Learned are the output, its tokens and the end; not the prompt, and not what stands between
    paragraph tags, of each pair by itself. The tags are learned. Without `learn_unsupported` the
    words of sentences that end in ``[No support / Contradictory]`` are not. A longer record is cut
    at its end. With `as_released`, learned is what the released program learns.
    """
    before = decision_prompt(Prefix(instruction))
    prompt: list[int] = tokenizer(before).input_ids
    # Together, because some tokenizers begin a text that stands alone with a space.
    end: Any = tokenizer.eos_token_id
    ids: list[int] = [*tokenizer(before + output).input_ids, end]
    same = [a == b for a, b in zip(prompt, ids, strict=False)]
    start = same.index(False) if False in same else len(prompt)
    numbers = token_ids(tokenizer)
    if as_released:
        ids = ids[:max_length]
        return token_text(ids, _learned_as_released(ids, min(len(prompt), max_length), numbers))
    if start >= max_length:
        return None
    learned = [False] * start + list(_learned(ids[start:], numbers))
    if not learn_unsupported:
        for place in _unsupported(ids, numbers):
            learned[place] = False
    return token_text(ids[:max_length], learned[:max_length])


def reflective_texts(
    tokenizer: "PreTrainedTokenizerBase",
    records: Iterable[tuple[str, str]],
    recipe: LanguageRecipe,
) -> list[TokenText]:
    """Return instructions and outputs as tokens, without those that are too long."""
    made = (
        reflective_text(
            tokenizer, asked, output, recipe.max_length,
            learn_unsupported=recipe.learn_unsupported, as_released=recipe.as_released,
        )
        for asked, output in records
    )  # fmt: skip
    return [text for text in made if text is not None]


def _learned_as_released(ids: list[int], start: int, numbers: dict[str, int]) -> list[bool]:
    """Return which tokens of a record, cut to its length, the released program learns.

    It learns the last token of the prompt too. It leaves out all from the first opening tag to the
    last closing one, sentences between passages included; of a passage that is cut, or that opens
    after the last closing tag, all but the last token of the record.
    """
    learned = [place >= start - 1 for place in range(len(ids))]
    opens = [place for place in range(start, len(ids)) if ids[place] == numbers[OPEN]]
    closes = [place for place in range(start, len(ids)) if ids[place] == numbers[CLOSE]]
    last = closes[-1] if closes else -1
    whole = [place for place in opens if place < last][:1]
    cut = [place for place in opens if place > last][:1]
    for first, end in [*((one, last) for one in whole), *((one, len(ids) - 1) for one in cut)]:
        learned[first + 1 : end] = [False] * max(0, end - first - 1)
    return learned


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
