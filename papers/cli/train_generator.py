"""`crag train generator`: fine-tune a generator of Self-RAG on critiqued records."""

from crag.cli.options import JsonOption
from crag.cli.terminal import assigned
from crag.papers.cli.command import command
from crag.papers.cli.groups import train
from crag.papers.cli.options import (
    CasesArgument,
    CurvesOption,
    LicenceOption,
    ModelFolder,
    RecipeOption,
    RecipeSettings,
)

_LIMITS = [
    "It critiques its own text; a critique is a prediction of the critic's, not the truth.",
    "It is as good as its critic and its passages, which this card does not measure.",
]
_NEXT = "Next, use it:\n  CRAG_REFLECTION={} crag ask QUESTION --method self-rag"


@command(
    train,
    "crag train generator records.jsonl --output models/self-rag",
    extra="train",
)
def generator(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: CasesArgument,
    output: ModelFolder,
    recipe: RecipeOption = None,
    settings: RecipeSettings = None,
    licence: LicenceOption = None,
    pictures: CurvesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a generator of Self-RAG on critiqued records; run it again to resume."""
    from crag.papers.cli.language_training import LanguageTraining
    from crag.papers.self_rag.generator_data import ReflectiveRecord
    from crag.papers.self_rag.language_recipe import language_recipe
    from crag.papers.self_rag.reflective_text import reflective_text

    chosen = language_recipe("generator", recipe, assigned(settings))
    training = LanguageTraining("generator", chosen, output, pictures, quiet=as_json)
    records = training.read(data, ReflectiveRecord, licence, lambda one: one.fault)
    base = training.base()
    made = [
        reflective_text(
            base.tokenizer, one.asked, one.output, chosen.max_length,
            learn_unsupported=chosen.learn_unsupported, form=chosen.form,
        )
        for one in records
    ]  # fmt: skip
    texts = [text for text in made if text is not None]
    left_out = {"instruction too long": len(made) - len(texts)}
    training.finish(training.train(base, texts, left_out, _LIMITS), _NEXT)
