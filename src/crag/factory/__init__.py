"""Choose the parts from the environment, and report which were chosen and why.

The names below load when they are asked for: `crag index` needs neither models nor graphs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crag.factory.doctor import examine
    from crag.factory.indexing import choose_encoder, choose_limits
    from crag.factory.parts import (
        choose_attributor,
        choose_evaluator,
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
_MODULES = {
    "PartStatus": "status",
    "choose_attributor": "parts",
    "choose_encoder": "indexing",
    "choose_evaluator": "parts",
    "choose_limits": "indexing",
    "choose_model": "parts",
    "choose_parts": "parts",
    "choose_prompts": "parts",
    "choose_reader": "web",
    "choose_reflection": "reflection",
    "choose_searcher": "web",
    "examine": "doctor",
    "examine_web": "web",
    "service_options": "parts",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
