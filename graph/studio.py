"""The graphs that `langgraph.json` serves, built from the environment.

Nothing is loaded here: the index opens and the encoder loads on the first question, and a missing
index is recorded as an event of that run.
"""

from crag.factory import choose_parts
from crag.graph.baseline import build_rag
from crag.graph.corrective import build_crag
from crag.graph.decomposed import build_decomposed
from crag.graph.reflective import build_self_crag, build_self_rag
from crag.runtime.environment import Environment
from crag.telemetry import start

_environment = Environment()
start(_environment)
_parts = choose_parts(_environment)

crag = build_crag(_parts)
decomposed = build_decomposed(_parts)
self_crag = build_self_crag(_parts)
self_rag = build_self_rag(_parts)
rag = build_rag(_parts)
