"""Choose the parts from the environment, and report which were chosen and why."""

from crag.factory.choice import Choice
from crag.factory.choosing import choose_encoder, choose_model, choose_parts
from crag.factory.examining import examine
from crag.factory.reflection import choose_reflection
from crag.factory.web import choose_reader, choose_searcher, examine_web

__all__ = [
    "Choice",
    "choose_encoder",
    "choose_model",
    "choose_parts",
    "choose_reader",
    "choose_reflection",
    "choose_searcher",
    "examine",
    "examine_web",
]
