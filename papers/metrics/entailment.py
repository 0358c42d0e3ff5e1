"""Load a natural-language-inference model as a function of premise and hypothesis."""

from typing import Any

from crag.errors import ModelError
from crag.extras import require
from crag.papers.metrics.citing import Entails

TRUE_MODEL = "google/t5_xxl_true_nli_mixture"
"""The official one: it writes ``1`` if the premise entails the hypothesis."""
_TOKENS = 10


def load_entailment(model: str = TRUE_MODEL, *, device: str = "cpu") -> Entails:
    """Load a model by hub name or folder: one that writes ``1`` as TRUE does, or a classifier.

    A classifier needs a label that begins with `entail`; the likeliest label counts. Inputs longer
    than the model reads are truncated, at the premise's end for classifiers.

    Raises:
        ModelError: it cannot be loaded, or is of neither kind.
        MissingPackageError: the extra `torch` is not installed.
    """
    require("torch", f"the entailment model {model}", "torch", "transformers")
    from transformers import AutoConfig

    try:
        config: Any = AutoConfig.from_pretrained(model)
        if config.is_encoder_decoder:
            return _writing(model, device)
        labels = {number: name.lower() for number, name in config.id2label.items()}
        wanted = [number for number, name in labels.items() if name.startswith("entail")]
        if wanted:
            return _classifying(model, device, wanted[0])
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(model, "unknown", f"it cannot be loaded: {error}") from error
    known = ", ".join(labels.values())
    raise ModelError(model, "unknown", f"none of its labels is entailment: {known}")


def _writing(model: str, device: str) -> Entails:
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    writer: Any = AutoModelForSeq2SeqLM.from_pretrained(model).to(device).eval()

    def entails(premise: str, hypothesis: str) -> bool:
        text = f"premise: {premise} hypothesis: {hypothesis}"
        tokens = tokenizer(text, return_tensors="pt").to(device)
        with torch.inference_mode():
            written = writer.generate(tokens["input_ids"], max_new_tokens=_TOKENS, do_sample=False)
        return bool(tokenizer.decode(written[0], skip_special_tokens=True).strip() == "1")

    return entails


def _classifying(model: str, device: str, wanted: int) -> Entails:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    classifier: Any = AutoModelForSequenceClassification.from_pretrained(model).to(device).eval()

    def entails(premise: str, hypothesis: str) -> bool:
        tokens = tokenizer(premise, hypothesis, truncation="only_first", return_tensors="pt")
        with torch.inference_mode():
            scores = classifier(**tokens.to(device)).logits[0]
        return int(scores.argmax()) == wanted

    return entails
