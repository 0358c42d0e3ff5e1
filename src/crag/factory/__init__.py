"""Choose the parts from the environment, and report which were chosen and why."""

from crag.factory.doctor import examine
from crag.factory.parts import (
    choose_attributor,
    choose_encoder,
    choose_evaluator,
    choose_limits,
    choose_model,
    choose_parts,
    choose_prompts,
    service_options,
)
from crag.factory.reflection import choose_reflection
from crag.factory.status import PartStatus
from crag.factory.web import choose_reader, choose_searcher, examine_web

__all__ = [
    "PartStatus", "choose_attributor", "choose_encoder", "choose_evaluator", "choose_limits",
    "choose_model", "choose_parts", "choose_prompts", "choose_reader", "choose_reflection",
    "choose_searcher", "examine", "examine_web", "service_options",
]  # fmt: skip
