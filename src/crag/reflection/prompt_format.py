"""The prompts that the tuned models were trained on, to the letter.

Neither instruction nor passage can bring a reflection token or a tag into a prompt: both go through
`crag.text.untrusted.neutral`. Only what the model itself wrote keeps its tokens.
"""

from collections.abc import Mapping
from typing import Literal

from crag.parts import Passage, Prefix
from crag.reflection_tokens import CLOSE, NO_RETRIEVAL, OPEN, RETRIEVAL
from crag.text.untrusted import neutral

InstructionTask = Literal["open", "pubhealth", "arc", "asqa", "biography"]
CLOSED: frozenset[InstructionTask] = frozenset({"pubhealth", "arc"})
"""Tasks with a closed set of answers, whose scores are summed over identical answers."""

_PUBHEALTH = (
    "Is the following statement correct or not? Say true if it's correct; otherwise say false."
)
_ARC = "Given four answer candidates, A, B, C and D, choose the best answer choice."
_ASQA = (
    "Answer the following question. The question may be ambiguous and have multiple correct "
    "answers, and in that case, you have to provide a long-form answer including all correct "
    "answers."
)
_LETTERS = ("A", "B", "C", "D")


def instruction_for(
    task: InstructionTask, text: str, choices: Mapping[str, str] | None = None
) -> str:
    """Return the instruction field for a question, claim or request.

    `choices` are the answers of an ARC question by their labels, letters or numbers: 1 to 4 count
    as A to D, a missing answer is empty, and a fifth is left out, as in the released evaluation.
    """
    match task:
        case "open" | "biography":
            return text
        case "pubhealth":
            return f"{_PUBHEALTH}\n\n## Input:\n\n{text}"
        case "asqa":
            return f"{_ASQA}## Input:\n\n{text}"
        case "arc":
            return f"{_ARC}\n\n### Input:\n{text}{_choices(choices or {})}"


def base_prompt(instruction: str) -> str:
    """Return the prompt up to the answer; the tokenizer adds the token of the beginning."""
    return f"### Instruction:\n{neutral(instruction)}\n\n### Response:\n"


def decision_prompt(prefix: Prefix) -> str:
    """Return the prompt after which a Retrieve token is expected."""
    return base_prompt(prefix.instruction) + prefix.answered


def candidate_prompt(prefix: Prefix, passage: Passage | None) -> str:
    """Return the prompt after which a segment is generated; None forces ``[No Retrieval]``.

    With a passage the first token that is expected is one of IsRel.
    """
    return decision_prompt(prefix) + (NO_RETRIEVAL if passage is None else passage_block(passage))


def passage_block(passage: Passage) -> str:
    """Return a passage with its token and tags; title and text cannot close or open any."""
    title = " ".join(neutral(passage.title).split())
    return f"{RETRIEVAL}{OPEN}{title}\n{neutral(passage.text)}{CLOSE}"


def _choices(choices: Mapping[str, str]) -> str:
    """Write four options; none if the question contains them already."""
    if not choices:
        return ""
    lettered = {_letter(label): text for label, text in choices.items()}
    return "".join(f"\n{letter}: {lettered.get(letter, '')}" for letter in _LETTERS)


def _letter(label: str) -> str:
    numbered = dict(zip("1234", _LETTERS, strict=True))
    return numbered.get(label, label)
