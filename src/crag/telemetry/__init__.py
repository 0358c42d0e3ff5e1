"""What watches runs from outside: OpenTelemetry's traces and metrics, and logs in JSON.

Off by default. Everything hangs on LangChain's callbacks, which every graph, node, model, retriever
and tool calls anyway, so no node knows of it and a process that is not watched pays nothing. No
text and no key is told: neither questions, documents and answers nor the messages of errors.
"""

from crag.telemetry.instruments import Instruments
from crag.telemetry.setup import check, start
from crag.telemetry.watch import RunWatch

__all__ = ["Instruments", "RunWatch", "check", "start"]
