"""A language model that is a function of its prompt, for programs that are to be compared with it.

What it writes is drawn from a seed and the prompt: reflection tokens and words, ids and
log-probabilities, and now and then what programs stumble over, such as segments without words,
passages that are made up, repeats, missing tokens and texts that are cut. `VllmModel` shows it to a
program that expects vLLM, `ScriptedReflection` to ours, which reads the same tokens.
"""

import math
import random
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from crag.reflection.backends.candidates import Position, Row, TokenReflection
from crag.reflection_tokens import CLOSE, END, GROUPS, RETRIEVE, TOKENS

UNKNOWN, END_ID = 0, 2
SPELT_OUT_SHARE, MISSING_SHARE = 0.1, 0.2
IDS = {token: 32_000 + place for place, token in enumerate(TOKENS)}
SENTENCES = (
    (), ("Ada", " wrote", " notes", "."), ("Babbage", " built", " it", "!"), ("Note", " G", "?"),
    ("It", ".", "Was", " so", "."), ("x",), (".",), ("Ada", " wrote", " notes", "."),
    ("<paragraph>", " made", " up", "</paragraph>"), ("#", "One"), (":", "Two", "."),
)  # fmt: skip
SPELT_OUT = (("[", "Retri", "eval", "]"), ("[No", " Retri", "eval", "]"))


class Style(NamedTuple):
    """What the model is like."""

    breaks: float = 0.0
    """The share of sentences with a line break, or an empty line, in them."""
    spaces: float = 0.0
    """The share of sentences that begin with a space."""
    has_tokens: bool = True
    """Whether it knows reflection tokens; otherwise it may spell some out in letters."""


class Written(NamedTuple):
    """One token that was written."""

    number: int
    text: str
    log_probability: float
    seen: dict[int, float]
    """Log-probabilities at this position, by id."""


class ScriptedModel:
    """Write what a seed, a style and the prompt say."""

    def __init__(self, seed: int, style: Style) -> None:
        self._seed, self._style = seed, style

    def write(self, prompt: str, most: int) -> list[Written]:
        """Return at most so many tokens; the last is that of the end, unless the text is cut."""
        # Of a text, only `random` is promised to draw the same numbers in every Python.
        draw = random.Random(f"{self._seed}\n{prompt}").random  # noqa: S311 - made-up data
        pieces: list[str] = list(self._pieces(prompt, draw))
        tokens = [self._token(piece, draw, is_first=not at) for at, piece in enumerate(pieces)]
        return [*tokens, self._token(END, draw, is_first=not tokens)][:most]

    def _pieces(self, prompt: str, draw: Any) -> list[str]:
        has_tokens, style = self._style.has_tokens, self._style
        pieces: list[str] = []
        if has_tokens:
            expected = GROUPS["relevance"] if prompt.endswith(CLOSE) else (*RETRIEVE[:2], "")
            pieces.append(_one(draw, (*expected, "")))
        for _ in range(int(draw() * 5)):
            sentence = list(_one(draw, SENTENCES))
            if draw() < style.spaces:
                sentence.insert(0, " ")
            if draw() < style.breaks:
                sentence.insert(int(draw() * (len(sentence) + 1)), _one(draw, ("\n", "\n\n")))
            pieces += sentence
            if has_tokens:
                pieces.append(_one(draw, ("", "", *GROUPS["support"], "[Utility:5]")))
                pieces.append(_one(draw, ("", "", "", *RETRIEVE, "[No Retrieval]")))
            elif draw() < SPELT_OUT_SHARE:
                pieces += _one(draw, SPELT_OUT)
        return [piece for piece in pieces if piece]

    def _token(self, piece: str, draw: Any, *, is_first: bool) -> Written:
        has_tokens = self._style.has_tokens
        number = END_ID if piece == END else IDS.get(piece, UNKNOWN) if has_tokens else UNKNOWN
        own = 0.5 + 0.5 * draw()
        seen: dict[int, float] = {}
        for token, of_token in IDS.items():
            share, is_missing = draw() ** 2 * (1 - own), draw() < MISSING_SHARE
            # The released programs fail where a Retrieve token is missing at the first position.
            if has_tokens and (not is_missing or (is_first and token in RETRIEVE)):
                seen[of_token] = math.log(share)
        if not has_tokens:
            seen[UNKNOWN] = math.log(draw())
        if number == UNKNOWN:
            number = 100 + sum(map(ord, piece))  # Any id of a word; programs do not read it.
        seen[number] = math.log(own)
        return Written(number, "" if piece == END else piece, seen[number], seen)


def _one(draw: Any, choices: Sequence[Any]) -> Any:
    return choices[int(draw() * len(choices))]


class VllmModel:
    """The model as vLLM's class `LLM` shows it."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model

    def generate(self, prompts: Sequence[str], params: Any) -> list[Any]:
        """Return a request's output for each prompt, with log-probabilities if they are wanted."""
        return [self._output(self._model.write(prompt, params.max_tokens)) for prompt in prompts]

    def _output(self, written: Sequence[Written]) -> Any:
        output = SimpleNamespace(
            text="".join(token.text for token in written),
            token_ids=[token.number for token in written],
            logprobs=[token.seen for token in written],
            cumulative_logprob=sum(token.log_probability for token in written),
        )
        return SimpleNamespace(outputs=[output])


class VllmTokenizer:
    """The model's tokenizer, of whose methods the programs call one."""

    def __init__(self, style: Style) -> None:
        self._ids = IDS if style.has_tokens else {}

    def convert_tokens_to_ids(self, token: str) -> int:
        """Return the id of a token; that of unknown ones if there is no such token."""
        return self._ids.get(token, UNKNOWN)


class ScriptedReflection(TokenReflection):
    """The model as a back end of reflection."""

    def __init__(self, model: ScriptedModel, style: Style) -> None:
        self._model = model
        known = {number: token for token, number in IDS.items()} if style.has_tokens else {}
        self._names = {END_ID: END} | known

    @property
    def approximation(self) -> str:
        """Nothing, whatever tokens it lacks."""
        return ""

    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        return [self._row(self._model.write(prompt, most), {END, *stops}) for prompt in prompts]

    def _row(self, written: Sequence[Written], stops: Collection[str]) -> Row:
        names = self._names or {}
        positions = [
            Position(
                names.get(token.number, ""),
                token.log_probability,
                {names[n]: p for n, p in token.seen.items() if n in names and n != END_ID},
            )
            for token in written
        ]
        end = next((i for i, at in enumerate(positions) if at.token in stops), len(positions))
        return Row(positions, "".join(token.text for token in written[:end]), is_cut=True)
