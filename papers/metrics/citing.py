"""Citation recall and precision as ALCE measures them (ALCE, Sec. 3; Self-RAG, Sec. 4.1).

A natural-language-inference model says whether cited passages entail a sentence. The official one
is TRUE (`google/t5_xxl_true_nli_mixture`, 11B parameters); any function of two texts works, but
numbers of different functions must not be compared.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from crag.errors import ModelError
from crag.extras import require
from crag.papers.bench.examples import Example
from crag.papers.metrics.long_form import first_line, sentences, single_marks, without_citations
from crag.papers.metrics.metric import Metric, Row

AT_MOST = 3
"""Most citations per sentence that count; the published runs ignore the rest."""
Entails = Callable[[str, str], bool]
"""Does the premise (passages) entail the hypothesis (a sentence)?"""
_NUMBER = re.compile(r"\[(\d+)")
"""What ALCE takes for a citation, whichever marks our answers have."""
_TOKENS = 10


class Cited(NamedTuple):
    """How well one answer is supported."""

    recall: float
    """The share of sentences that their citations together entail."""
    precision: float
    """The share of citations that entail alone or are needed, in sentences that are entailed."""


def passage_text(title: str, text: str) -> str:
    """Format a passage for the entailment model."""
    return f"Title: {title}\n{text}"


def cited(answer: str, passages: Mapping[int, str], entails: Entails) -> Cited | None:
    """Measure one answer whose ``[n]`` is the passage `n`; None if it has no sentence.

    A sentence without a citation, or with one that refers to nothing, is not supported; citations
    of the latter do not count for precision. ``[1, 2]`` is read as ``[1][2]``. A citation is needed
    if it entails the claim alone, or if the others do not without it.
    """
    said = sentences(single_marks(first_line(answer)))
    supported = citations = right = 0
    for sentence in said:
        numbers = [int(number) for number in _NUMBER.findall(sentence)]
        if not numbers or not passages.keys() >= set(numbers):
            continue
        texts, claim = [passages[n] for n in numbers[:AT_MOST]], without_citations(sentence).strip()
        citations += len(texts)
        if entails("\n".join(texts), claim):
            supported += 1
            right += sum(
                len(texts) == 1
                or entails(text, claim)
                or not entails("\n".join([*texts[:place], *texts[place + 1 :]]), claim)
                for place, text in enumerate(texts)
            )
    if not said:
        return None
    return Cited(supported / len(said), right / citations if citations else 0.0)


def citation_metrics(entails: Entails | None = None) -> tuple[Metric, Metric]:
    """Return citation recall and precision by `entails`; without it they have no values.

    The row's `citations` are the texts that the numbers of an answer refer to.
    """
    once = None if entails is None else cache(entails)

    def of(field: str) -> Callable[[Example, Row], float | None]:
        def compute(_: Example, row: Row) -> float | None:
            passages = {
                one["number"]: passage_text(one["source"]["title"], one["text"])
                for one in row["citations"]
            }
            found = once and cited(str(row["answer"]), passages, once)
            return getattr(found, field) if found else None

        return compute

    return (
        Metric(name="citation_recall", compute=of("recall"), needs="--entailment"),
        Metric(name="citation_precision", compute=of("precision"), needs="--entailment"),
    )


def load_entailment(model: str) -> Entails:
    """Load a model by hub name or folder: one that writes ``1`` as TRUE does, or a classifier.

    A classifier needs a label that begins with `entail`; the likeliest label counts. Inputs longer
    than the model reads are truncated, at the premise's end for classifiers.

    Raises:
        ModelError: it cannot be loaded, or is of neither kind.
        MissingPackageError: the extra `torch` is not installed.
    """
    require("torch", f"the entailment model {model}", "torch", "transformers")
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, pipeline

    tokenizer: Any = None
    writer: Any = None
    judge: Any = None
    try:
        config: Any = AutoConfig.from_pretrained(model)
        if config.is_encoder_decoder:
            tokenizer = AutoTokenizer.from_pretrained(model)
            writer = AutoModelForSeq2SeqLM.from_pretrained(model).eval()
        elif any(map(_is_entailment, config.id2label.values())):
            judge = pipeline("text-classification", model)
        else:
            known = ", ".join(config.id2label.values())
            raise ModelError(model, "unknown", f"none of its labels is entailment: {known}")
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(model, "unknown", f"it cannot be loaded: {error}") from error

    def writes_one(premise: str, hypothesis: str) -> bool:
        tokens = tokenizer(f"premise: {premise} hypothesis: {hypothesis}", return_tensors="pt")
        written = writer.generate(tokens["input_ids"], max_new_tokens=_TOKENS, do_sample=False)
        return bool(tokenizer.decode(written[0], skip_special_tokens=True).strip() == "1")

    def classifies(premise: str, hypothesis: str) -> bool:
        pair = {"text": premise, "text_pair": hypothesis}
        return _is_entailment(judge(pair, truncation="only_first")["label"])

    return writes_one if config.is_encoder_decoder else classifies


def _is_entailment(label: str) -> bool:
    return label.lower().startswith("entail")
