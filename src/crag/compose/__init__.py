"""Choose the parts from the environment, and say which were chosen and why."""

from crag.compose.choice import Choice
from crag.compose.choosing import choose_encoder, choose_model, choose_parts
from crag.compose.examining import examine
from crag.compose.reflection import choose_reflection
from crag.compose.web import choose_reader, choose_searcher, examine_web

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
