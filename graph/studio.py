"""The graphs that `langgraph.json` serves, built from the environment.

Nothing is loaded here: the index opens and the encoder loads on the first question, and a missing
index is recorded as an event of that run.
"""

from crag.factory.parts import choose_parts
from crag.graph_registry import built
from crag.runtime.environment import Environment
from crag.telemetry import start

_environment = Environment()
start()

graphs = built(choose_parts(_environment))
globals().update(graphs)  # `langgraph.json` names a variable for each graph.
