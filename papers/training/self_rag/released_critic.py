"""The released critic: the records of its data, its prompts, and labels that it writes as words.

Its data are a JSON array of `instruction`, `input`, `output` and `task`; its checkpoint knows no
reflection token and writes each label out. What it was trained on must match to the letter.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.papers.training.self_rag.critique_cases import Case, Kind

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RELEASED_PAD = "[PAD]"
"""The one token that the released critic adds to Llama's; by it a checkpoint is recognised."""
PREAMBLE = (
    "Below is an instruction that describes a task, paired with an input that provides further "
    "context. Write a response that appropriately completes the request.\n\n"
)
"""What the released labelling program puts before each prompt; the training program does not."""

_NEXT = "If the preceding sentence is given, the output should be the sentence that follows those "
WORDING: Mapping[Kind, str] = {
    "retrieve": (
        "When provided with instruction, please evaluate whether seeking additional information "
        "from external sources such as the web (e.g., Wikipedia) aids in producing a more "
        "comprehensive response. Respond with either [Retrieval] or [No Retrieval]."
    ),
    "retrieve_next": (
        "You will be provided with an instruction, evidence, output sentence, and preceding "
        f"sentences (optional). {_NEXT}preceding sentences.  Your task is to determine whether the "
        "information in the output sentence can be fully verified by the evidence or if it "
        "requires further external verification. There are three cases:\n"
        "- If the output sentence can be verified solely with the evidence, then respond with "
        "[Continue to Use Evidence]. \n"
        "- If the sentence doesn't require any factual verification (e.g., a subjective sentence "
        "or a sentence about common sense), then respond with  [No Retrieval]. \n"
        "If additional information is needed to verify the output sentence, respond with "
        "[Retrieval]. Please provide explanations for your judgments. \n\n"
    ),
    "relevance": (
        "When given instruction and evidence, evaluate whether the evidence is relevant to the "
        "instruction and provides valuable information for generating meaningful responses.\n"
        "Use a rating of [Relevant] to indicate relevance and usefulness, and [Irrelevant] to "
        "indicate irrelevance."
    ),
    "support": (
        "You will receive an instruction, evidence, and output, and optional preceding sentences.  "
        f"{_NEXT}preceding sentences. Your task is to evaluate if the output is fully supported by "
        "the information provided in the evidence, and provide explanations on your judgement\n"
        "Use the following entailment scale to generate a score:\n"
        "[Fully supported] - All information in output is supported by the evidence, or "
        "extractions from the evidence. This is only applicable when the output and part of the "
        "evidence are almost identical.\n"
        "[Partially supported] - The output is supported by the evidence to some extent, but there "
        "is major information in the output that is not discussed in the evidence. For example, if "
        "an instruction asks about two concepts and the evidence only discusses either of them, it "
        "should be considered a [Partially supported].\n"
        "[No support / Contradictory] - The output completely ignores evidence, is unrelated to "
        "the evidence, or contradicts the evidence. This can also happen if the evidence is "
        "irrelevant to the instruction.\n\n"
        "Make sure to not use any external information/knowledge to judge whether the output is "
        "true or not. Only check whether the output is supported by the evidence, and not whether "
        "the output follows the instructions or not.\n\n"
    ),
    "utility": (
        "Given an instruction and an output, rate whether the response appears to be a helpful and "
        "informative answer to the query, from 1 (lowest) - 5 (highest). We call this score "
        "perceived utility.\n"
        "[Utility:5]: The response provides a complete, highly detailed, and informative response "
        "to the query, fully satisfying the information needs.\n"
        "[Utility:4]: The response mostly fulfills the need in the query, while there can be some "
        "minor improvements such as discussing more detailed information, having better structure "
        "of the response, or improving coherence. \n"
        "[Utility:3]: The response is acceptable, but some major additions or improvements are "
        "needed to satisfy users' needs.\n"
        "[Utility:2]: The response still addresses the main request, but it is not complete or not "
        "relevant to the query.\n"
        "[Utility:1]: The response is barely on-topic or completely irrelevant.\n"
    ),
}
"""The instructions that the released critic was trained on (its repository, under the MIT licence);
a paraphrase would be another task to it."""

_INPUTS: Mapping[Kind, str] = {
    "retrieve": r"Task instruction: (?P<instruction>.*)",
    "retrieve_next": (
        r"Task instruction: (?P<instruction>.*?)\nPreceding sentences: (?P<preceding>.*?)"
        r"\nEvidence: (?P<evidence>.*?)\nOutput: (?P<output>.*)"
    ),
    "relevance": r"Task instruction: (?P<instruction>.*?)\nEvidence: (?P<evidence>.*)",
    "support": (
        r"Task instruction: (?P<instruction>.*?)(?:\nPreceding sentences: (?P<preceding>.*?))?"
        r"\nOutput: (?P<output>.*?)\nEvidence: (?P<evidence>.*)"
    ),
    "utility": r"Task instruction: (?P<instruction>.*?)\nOutput: (?P<output>.*)",
}
_KINDS: Mapping[str, Kind] = {
    "utility": "utility",
    "relevance": "relevance",
    "groudness": "support",  # Spelt so in the released data.
    "multi_retrieval": "retrieve_next",
}


def released_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a labelled case from a record of the released critic's data.

    Raises:
        ValueError: its input is not of the form of its task.
    """
    shown, task = str(row.get("input", "")), str(row.get("task", ""))
    retrieves: Kind = "retrieve_next" if "\nEvidence: " in shown else "retrieve"
    kind = _KINDS.get(task, retrieves)
    if task not in {*_KINDS, "retrieval"}:
        message = f"task: {task!r} is none of retrieval, {', '.join(_KINDS)}"
        raise ValueError(message)
    fields = re.fullmatch(_INPUTS[kind], shown, re.DOTALL)
    if fields is None:
        message = f"input: it has not the fields of the task {task!r}, Task instruction first"
        raise ValueError(message)
    given = {name: text for name, text in fields.groupdict().items() if text is not None}
    return {
        "kind": kind,
        "label": row.get("output"),
        "wording": row.get("instruction", ""),
        "source": "released",
        "group": given["instruction"],  # No instruction is on both sides of a split.
        **given,
    }


def released_prompt(case: Case, preamble: str = "") -> tuple[str, str, str]:
    """Return the released prompt before, within and after the evidence; the label follows at once.

    Of a record of the released data it is the record's own instruction and input.
    """
    before = f"Task instruction: {case.instruction}"
    if case.kind == "retrieve_next" or (case.kind == "support" and case.preceding):
        before += f"\nPreceding sentences: {case.preceding}"
    after = ""
    if case.kind in {"support", "utility"}:
        before += f"\nOutput: {case.output}"
    if case.kind in {"relevance", "support", "retrieve_next"}:
        before += "\nEvidence: "
    if case.kind == "retrieve_next":
        after = f"\nOutput: {case.output}"
    task = case.wording or WORDING[case.kind]
    head = f"{preamble}### Instruction:\n{task}\n\n### Input:\n{before}"
    return head, case.evidence, f"{after}\n\n### Response:"


class WrittenLabel(NamedTuple):
    """A prompt with a label written out after it, as tokens."""

    ids: list[int]
    start: int
    """Place of the label's first token."""


def written_label(
    tokenizer: "PreTrainedTokenizerBase", parts: tuple[str, str, str], label: str, most: int
) -> WrittenLabel | None:
    """Return a prompt with its label, at most `most` tokens; the evidence is cut to fit.

    None if it does not fit even without its evidence.
    """
    before, evidence, after = parts
    while True:
        text = before + evidence + after
        # Together, because some tokenizers begin a text that stands alone with a space.
        ids: list[int] = tokenizer(text + label).input_ids
        if len(ids) <= most:
            alone: list[int] = tokenizer(text).input_ids
            same = [one == other for one, other in zip(alone, ids, strict=False)]
            return WrittenLabel(ids, same.index(False) if False in same else len(alone))
        if not evidence:
            return None
        pieces: list[int] = tokenizer(evidence, add_special_tokens=False).input_ids
        shorter = str(tokenizer.decode(pieces[: max(0, len(pieces) - (len(ids) - most))]))
        evidence = shorter if len(shorter) < len(evidence) else evidence[:-1]
