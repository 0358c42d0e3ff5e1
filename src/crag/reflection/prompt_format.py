"""The prompts that the tuned models were trained on, to the letter.

Neither instruction nor passage can bring a reflection token or a tag into a prompt: both go through
`crag.text.untrusted.neutral`. Only what the model itself wrote keeps its tokens.
"""

from crag.parts import Passage, Prefix
from crag.reflection_tokens import CLOSE, NO_RETRIEVAL, OPEN, RETRIEVAL
from crag.text.untrusted import neutral


def base_prompt(instruction: str) -> str:
    """Return the prompt up to the answer; the tokenizer adds the token of the beginning."""
    return f"### Instruction:\n{neutral(instruction)}\n\n### Response:\n"


def decision_prompt(prefix: Prefix) -> str:
    """Return the prompt after which a Retrieve token is expected."""
    return base_prompt(prefix.instruction) + prefix.answered


def candidate_prompt(prefix: Prefix, passage: Passage | None, *, is_draft: bool = False) -> str:
    """Return the prompt after which a segment is generated; None forces ``[No Retrieval]``.

    With a passage the first token that is expected is one of IsRel. In a draft nothing is forced.
    """
    alone = "" if is_draft else NO_RETRIEVAL
    return decision_prompt(prefix) + (alone if passage is None else passage_block(passage))


def passage_block(passage: Passage) -> str:
    """Return a passage with its token and tags; title and text cannot close or open any."""
    title = " ".join(neutral(passage.title).split())
    return f"{RETRIEVAL}{OPEN}{title}\n{neutral(passage.text)}{CLOSE}"
